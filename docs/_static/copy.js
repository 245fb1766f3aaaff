/* A button that copies an example as a program: prompts are removed, and so is what the example prints. */
function asProgram(text) {
  const lines = text.replace(/\n$/, "").split("\n");
  if (!lines.some((line) => line.startsWith(">>> "))) return lines.join("\n") + "\n";
  const code = lines.filter((line) => /^(>>>|\.\.\.)( |$)/.test(line)).map((line) => line.slice(4));
  return code.join("\n") + "\n";
}

async function copyText(text) {
  try {
    return await navigator.clipboard.writeText(text);
  } catch { /* pages from disk may not be allowed to, and then copy a selection */ }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

document.addEventListener("DOMContentLoaded", () => {
  for (const pre of document.querySelectorAll(".bd-article div.highlight > pre")) {
    if (pre.closest(".sphx-glr-script-out, .highlight-text, .highlight-none")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy-example";
    button.textContent = "copy";
    button.setAttribute("aria-label", "Copy this example without prompts and output");
    button.addEventListener("click", async () => {
      await copyText(asProgram(pre.textContent));
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
    pre.parentElement.append(button);
  }
});
