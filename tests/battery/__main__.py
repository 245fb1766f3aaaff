"""Measure all estimators on all tables by hand; scores that the file has already are kept.

python -m tests.battery FILE.csv 0 1 2 3 4             these seeds
python -m tests.battery FILE.csv 0 1 --models finite,"finite CV" --tables wide
python -m tests.battery FILE.csv                       the table of means, minus those of the reference
"""

import argparse
import csv
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

COLUMNS = ["table", "seed", "model", "score", "seconds"]


def main() -> None:
    from tests.battery.models import FIXED, REFERENCES, SEARCHED
    from tests.battery.scores import score
    from tests.battery.tables import TABLES

    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("seeds", type=int, nargs="*")
    parser.add_argument("--models")
    parser.add_argument("--tables")
    arguments = parser.parse_args()
    done = {tuple(row[:3]) for row in _rows(arguments.file)}
    tables = arguments.tables.split(",") if arguments.tables else list(TABLES)
    for seed in arguments.seeds:
        for name in tables:
            table = TABLES[name](seed)
            models = {**FIXED[table.task], **SEARCHED[table.task]}
            models |= {
                f"{kind} reference {k}": model
                for kind in ("static", "fixed", "searched")
                for k, model in enumerate(REFERENCES[kind, table.task])
            }
            for label, model in models.items():
                wanted = arguments.models is None or label in arguments.models.split(",")
                if not wanted or (name, str(seed), label) in done:
                    continue
                start = time.process_time()
                try:
                    value = f"{score(model, table, seed):.5f}"
                except Exception as error:
                    print(f"{name}, seed {seed}, {label}: {error}", file=sys.stderr)
                    value = "nan"
                with arguments.file.open("a", newline="") as file:
                    csv.writer(file).writerow([name, seed, label, value, f"{time.process_time() - start:.2f}"])
    _print_means(arguments.file)


def _rows(path: Path) -> list[list[str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.reader(file))


def _print_means(path: Path) -> None:
    from tests.battery.models import reference_of

    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for name, _, label, value, _ in _rows(path):
        scores[name, label].append(float(value))
    means = {key: sum(values) / len(values) for key, values in scores.items()}
    labels = list(dict.fromkeys(label for _, label in means if "reference" not in label))
    print(f"{'table':<22}{'Ridge(1)':>9}{'CV':>7}" + "".join(f"{label[:10]:>11}" for label in labels))
    for name in dict.fromkeys(name for name, _ in means):
        best = {
            kind: max((v for (n, m), v in means.items() if n == name and m.startswith(f"{kind} ref")), default=0.0)
            for kind in ("static", "fixed", "searched")
        }
        cells = []
        for label in labels:
            if (name, label) not in means:
                cells.append(f"{'':>11}")
                continue
            difference = means[name, label] - best[reference_of(label)]
            cells.append(f"{difference:>10.3f}{' ' if difference >= -0.03 else '*'}")
        print(f"{name:<22}{best['fixed']:>9.3f}{best['searched']:>7.3f}" + "".join(cells))


if __name__ == "__main__":
    main()
