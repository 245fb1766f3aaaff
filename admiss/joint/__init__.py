"""Joint impute-then-regress (Section 3.2 of the paper): estimators, problem, and searches for imputed values."""

from admiss.joint.closed_form import ClosedForm
from admiss.joint.cv import JointImputeClassifierCV, JointImputeRegressorCV
from admiss.joint.estimators import JointImputeClassifier, JointImputeRegressor
from admiss.joint.paper_search import PaperSearch
from admiss.joint.problem import Imputation, ImputationSearch, JointProblem, Round

__all__ = [
    "ClosedForm",
    "Imputation",
    "ImputationSearch",
    "JointImputeClassifier",
    "JointImputeClassifierCV",
    "JointImputeRegressor",
    "JointImputeRegressorCV",
    "JointProblem",
    "PaperSearch",
    "Round",
]
