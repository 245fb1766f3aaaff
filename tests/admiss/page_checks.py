"""What every page must show in a browser: readable text, no text on text, nothing outside the screen."""

# Texts with less than 4.5 times the luminance of their ground, or the reverse (WCAG).
CONTRAST = """
const parse = (c) => c.match(/[\\d.]+/g).map(Number);
const linear = (x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
const light = (c) => { const [r, g, b] = parse(c).map((x) => linear(x / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (parse(c)[3] !== 0) return c; } return "rgb(255, 255, 255)"; };
const texts = "svg text, p, li, th, td, dt, dd, summary, legend, label, a, h1, h2, h3, figcaption, caption, "
  + "button, select";
return [...document.querySelectorAll(texts)]
  .filter((e) => e.checkVisibility() && e.textContent.trim())
  .map((e) => { const [a, b] = [light(getComputedStyle(e)[e.ownerSVGElement ? "fill" : "color"]), light(ground(e))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 60)]; })
  .filter(([ratio]) => ratio < 4.5);
"""
# Texts of figures that cover others or are cut at the sides; those that are slanted have other boxes.
COVERED = """
document.querySelectorAll("details").forEach((d) => d.open = true);
const found = [];
for (const svg of document.querySelectorAll("svg")) {
  const frame = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll("text")]
    .filter((t) => t.textContent.trim() && !/rotate\\(-?[1-9]/.test(t.getAttribute("transform")))
    .map((t) => [t.textContent, t.getBoundingClientRect()]);
  for (const [words, b] of boxes)
    if (b.left < frame.left - 1 || b.right > frame.right + 1) found.push(words + " is cut");
  boxes.forEach(([one, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
    if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4)
      found.push(one + " covers " + other); }));
}
return found;
"""
OUTSIDE = """
return [...document.querySelectorAll("main *, header *")]
  .filter((e) => e.checkVisibility() && !e.closest(".wide") && e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => e.outerHTML.slice(0, 80));
"""
SMALLEST = """
return Math.min(...[...document.querySelectorAll("svg text")]
  .filter((t) => t.checkVisibility() && t.textContent.trim())
  .map((t) => { const b = t.getBoundingClientRect(); return Math.max(b.height, b.width); })
  .filter((size) => size > 0));
"""


def check_no_text_covers_another(browser):
    assert browser.execute_script(COVERED) == []


def check_text_is_readable(browser, scheme):
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        assert browser.execute_script(CONTRAST) == []
        ground = "return getComputedStyle(document.body).backgroundColor"
        assert browser.execute_script(ground) == ("rgb(22, 24, 27)" if scheme == "dark" else "rgb(255, 255, 255)")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def check_page_fits(browser, width):
    """Nothing is outside a screen of this width, and no text of a figure is too small there."""
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.execute_script(OUTSIDE) == []
        assert browser.execute_script(SMALLEST) >= 6
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
