"""The recommendation that is made without a fit, and ridge regressions of each class."""

import time
from typing import Any

from admiss import AdaptiveRegressorCV
from admiss.bounds import recommend_from_data
from admiss.bounds.counts import read_class
from admiss.study import Method, Scores
from experiments.studies.methods.rows import StudyRows

# The classes of the study, by name.
CLASSES: dict[str, Any] = {
    "static": "static",
    "affine intercept": "affine_intercept",
    "affine": "affine",
    "order 2": ("polynomial", 2),
}


def recommend_and_fit(rows: StudyRows, seed: int) -> Scores:
    """Risks and columns of the classes by second moments; test R2 and held-out loss of their ridge regressions.

    Penalties are chosen by cross-validation on the same folds for all classes. The score is the test R2 of the
    recommended class.
    """
    start = time.process_time()
    ranked = {each.name: each for each in recommend_from_data(rows.X_train, rows.y_train, [*CLASSES.values()]).ranking}
    seconds = time.process_time() - start
    r2, held_out = [], []
    for F in CLASSES.values():
        adaptivity = read_class(F, rows.X_train.shape[1])
        model = AdaptiveRegressorCV([adaptivity], l1_ratios=[0.0], random_state=0).fit(rows.X_train, rows.y_train)
        r2.append(float(model.score(rows.X_test, rows.y_test)))
        held_out.append(-float(model.best_score_))
    recommended = next(iter(ranked))
    return {
        "score": r2[list(CLASSES).index(recommended)],
        "seconds": seconds,
        "recommended": recommended,
        "r2": r2,
        "held_out": held_out,
        "risks": [ranked[name].risk for name in CLASSES],
        "columns": [ranked[name].columns for name in CLASSES],
        **rows.facts,
    }


RECOMMENDATION = Method("recommendation", recommend_and_fit)
