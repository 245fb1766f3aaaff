"""The built site: links and anchors exist, no page loads anything from the network or shows the checkout's path."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes by which a page loads something, rather than leads somewhere.
LOADS = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("img", "srcset"),
    ("source", "srcset"),
    ("iframe", "src"),
}
# The folder of the checkout, which is of no use to a reader.
CHECKOUT = Path(__file__).resolve().parents[1]
# What is no page: templates of the theme.
LEFT_OUT = "_static"


class Page(HTMLParser):
    """The anchors of a page, where it leads, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the attributes of a tag."""
        for name, value in attrs:
            if not value:
                continue
            if name in ("id", "name"):
                self.anchors.add(value)
            elif (tag, name) in LOADS:
                parts = value.split(",") if name == "srcset" else [value]
                self.loads += [part.split()[0] for part in parts] if name == "srcset" else parts
            elif (tag, name) == ("a", "href"):
                self.links.append(value)


def problems(site: Path) -> list[str]:
    """A sentence for each link that leads nowhere, each load from elsewhere, and each page with the checkout's path."""
    paths = [path for path in sorted(site.rglob("*.html")) if LEFT_OUT not in path.relative_to(site).parts]
    texts = {path.resolve(): path.read_text(encoding="utf-8") for path in paths}
    pages = {path: Page(text) for path, text in texts.items()}
    found = [
        f"{path.relative_to(site.resolve())} contains {CHECKOUT}, the path of the checkout"
        for path, text in texts.items()
        if str(CHECKOUT) in text
    ]
    for path, page in pages.items():
        place = path.relative_to(site.resolve())
        for load in page.loads:
            split = urlsplit(load)
            if split.netloc:
                found.append(f"{place} loads {load}")
            elif split.scheme != "data" and split.path and not (path.parent / unquote(split.path)).exists():
                found.append(f"{place} loads {load}, which does not exist")
        for link in page.links:
            split = urlsplit(link)
            if split.scheme or split.netloc:
                continue
            target = (path.parent / unquote(split.path)).resolve() if split.path else path
            if not target.exists():
                found.append(f"{place} leads to {link}, which does not exist")
            elif split.fragment and target in pages and unquote(split.fragment) not in pages[target].anchors:
                found.append(f"{place} leads to {link}, which has no such anchor")
    return found if pages else [f"{site} has no pages"]


if __name__ == "__main__":
    found = problems(Path(sys.argv[1]))
    print(*found, sep="\n")
    sys.exit(bool(found))
