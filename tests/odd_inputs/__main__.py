"""Run odd inputs by hand.

python -m tests.odd_inputs 17            one input in this process, with its traceback
python -m tests.odd_inputs 0 10000       a range; failing seeds are printed with the reason
"""

import os
import sys
from collections import Counter

os.environ.setdefault("OMP_NUM_THREADS", "1")


def main(arguments: list[str]) -> int:
    from tests.odd_inputs.pool import Pool, run_case

    if len(arguments) == 1:
        outcome = run_case(int(arguments[0]))
        print(outcome.trace, outcome, sep="\n")
        return int(outcome.status == "failed")
    start, stop = map(int, arguments)
    counts: Counter[str] = Counter()
    seconds, slowest = 0.0, 0.0
    with Pool() as pool:
        for outcome in pool.outcomes(range(start, stop)):
            counts[outcome.status] += 1
            seconds, slowest = seconds + outcome.seconds, max(slowest, outcome.seconds)
            if outcome.status == "failed":
                print(outcome, flush=True)
            if outcome.seed % 500 == 499:
                print(f"up to {outcome.seed}: {dict(counts)}, {seconds:.0f} s", flush=True)
    print(f"{dict(counts)} in {seconds:.0f} s, the slowest in {slowest:.1f} s")
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
