"""Laws of features with missing values: what is to be expected where nothing is seen."""

from admiss.laws.fitting import LAWS, fit_law
from admiss.laws.law import Law

__all__ = ["LAWS", "Law", "fit_law"]
