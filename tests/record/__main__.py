"""Writes the record of what the package does."""

import json
import sys
import warnings

from tests.record.compare import RECORD, all_cases, read_record
from tests.record.interface import options, public_names


def main() -> None:
    """Record all cases, or those whose titles contain the given words; the others stay as they are."""
    warnings.simplefilter("ignore")
    words = sys.argv[1:]
    stored = read_record() if words else {"fits": {}}
    for title, case in all_cases().items():
        if not words or any(word in title for word in words):
            stored["fits"][title] = case()
    known = all_cases()
    stored["fits"] = {title: facts for title, facts in stored["fits"].items() if title in known}
    stored |= {"names": public_names(), "options": options()}
    lines = [f'"{title}": {json.dumps(facts)}' for title, facts in sorted(stored["fits"].items())]
    parts = [f'"{part}": {json.dumps(stored[part], indent=0)}' for part in ("names", "options")]
    parts.append('"fits": {\n' + ",\n".join(lines) + "\n}")
    RECORD.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


main()
