"""What a move of Algorithm 2 is, and when it is made: one rule for the plain and the accelerated search.

    a step is worth making if it lowers the error by more than   1e-12 (error + a + b sqrt(error))

which is some thousand times what rounding can do to the error: with a = 0 and b = sqrt(mean(y^2)) for the squared
error, whose rounding is that of predictions times residuals, and a = 1, b = 0 for the log-loss and the area under the
curve.
"""

from dataclasses import dataclass

import numpy as np

from admiss.joint.problem import JointProblem
from formulations.arrays import FloatArray
from formulations.jit import compiled

# What is not above this share is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Moves:
    """What an inner search did.

    Attributes
    ----------
    mu : array of shape (d,)
    moves : tuple of (feature, step)
        In their order; the step is what was added to mu.
    predict_calls, predicted_rows : int
        How often f was asked to predict, and how many rows in all.
    """

    mu: FloatArray
    moves: tuple[tuple[int, float], ...]
    predict_calls: int
    predicted_rows: int


def rounding_scale(problem: JointProblem) -> tuple[float, float]:
    """a and b of the rule."""
    if problem.error != "squared":
        return 1.0, 0.0
    return 0.0, float(np.sqrt(np.average(problem.y.astype(float) ** 2, weights=problem.sample_weight)))


@compiled
def sign_of_move(gain_down: float, gain_up: float, error: float, a: float, b: float) -> int:
    """-1, 0 or 1, given by how much the steps down and up lower the error; of two that are alike the step down."""
    needed = ROUNDING * (error + a + b * np.sqrt(max(error, 0.0)))
    if max(gain_down, gain_up) <= needed:
        return 0
    return 1 if gain_up > gain_down + needed else -1
