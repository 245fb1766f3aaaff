"""Laws of features with missing values, fitted by EM, and features and ridge regressions built on them."""

from admiss.laws.fitting import DEFAULT_PRIOR, LAWS, check_law, fit_law
from admiss.laws.law import Law

__all__ = ["DEFAULT_PRIOR", "LAWS", "Law", "check_law", "fit_law"]
