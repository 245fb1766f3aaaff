"""The studies by name."""

from admiss.study.study import Study
from experiments.studies import bounds, grids, partitions, real_design, stack, synthetic

STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY for module in (synthetic, grids, real_design, partitions, bounds, stack)
}


def find_study(name: str) -> Study:
    """The study of a name."""
    if name not in STUDIES:
        raise ValueError(f"Unknown study {name!r}: choose one of {', '.join(STUDIES)}.")
    return STUDIES[name]
