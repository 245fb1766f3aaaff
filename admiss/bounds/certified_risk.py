"""The result of ``risk_certificate``: bounds on capped risks, printed with what they say and do not say."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Any

from admiss.terminal.table import Table

FORMULAS = {"squared": "(y - f)^2", "zero_one": "1(y != f)", "brier": "Brier loss"}
ALL_ROWS = "all"
ASSUMPTION = "assumes i.i.d. rows of the law of new rows, used neither to fit or choose the models nor to set the cap"


@dataclass(frozen=True)
class CertifiedRisk:
    """The certificate of a model, for all rows or those in which a feature is missing or observed.

    Attributes
    ----------
    model : str
        Its name.
    rows : str
        "all", or a feature followed by "missing" or "observed".
    n : int
        Number of these rows.
    bound : float
        The certificate: the capped risk is at most this; the cap itself if the rows are too few.
    bernstein : float
        The same by empirical Bernstein, at the same level, for comparison.
    capped_mean, mean : float
        Mean loss in the sample, capped and as it is.
    n_capped : int
        Number of rows with a loss above the cap.
    """

    model: str
    rows: str
    n: int
    bound: float
    bernstein: float
    capped_mean: float
    mean: float
    n_capped: int

    @property
    def cut_off(self) -> float:
        """The share of the mean loss in the sample that the cap cuts off."""
        return 1 - self.capped_mean / self.mean if self.n_capped else 0.0


@dataclass(frozen=True, repr=False)
class RiskCertificate:
    """Bounds on the capped risk of models; all of them hold at once with probability 1 - delta.

    Attributes
    ----------
    risks : tuple of CertifiedRisk
        For each model; of all rows first.
    loss : str
        The loss.
    cap : float
        B, above which losses count as B.
    delta : float
        Probability that some bound fails.
    n : int
        Held-out rows.
    n_statements : int
        Statements that the bounds account for.
    capped : bool
        Whether the loss can exceed the cap.
    """

    risks: tuple[CertifiedRisk, ...]
    loss: str
    cap: float
    delta: float
    n: int
    n_statements: int
    capped: bool

    @property
    def bounds(self) -> dict[str, float]:
        """The bound of each model for all rows."""
        return {risk.model: risk.bound for risk in self.risks if risk.rows == ALL_ROWS}

    @property
    def table(self) -> Table:
        """All statements as a table."""
        names = ("model", "rows", "n", "bound", "bernstein", "capped_mean", "mean", "n_capped", "cut_off")
        return Table(**{name: [getattr(risk, name) for risk in self.risks] for name in names})

    def __repr__(self) -> str:
        what = f"min({FORMULAS[self.loss]}, {self.cap:.6g})" if self.capped else FORMULAS[self.loss]
        holds = f"all {len(self.risks)} bounds hold at once" if len(self.risks) > 1 else "the bound holds"
        lines = [
            f"{'capped ' * self.capped}risk E {what} on new rows: {holds} with probability {1 - self.delta:.6g}",
            repr(self._printed()),
        ]
        if self.capped:
            lines.append("capped: larger losses count as the cap, and what they add to the risk is not bounded")
        if self.n_statements > len(self.bounds):
            lines.append(f"corrected for {self.n_statements:,} statements, including groups that are empty or all rows")
        if any(risk.bound == self.cap for risk in self.risks):
            lines.append(f"a bound of {self.cap:.6g} says nothing: too few rows, or too large losses")
        lines.append(ASSUMPTION)
        return "\n".join(lines)

    def _printed(self) -> Table:
        """The table as printed: in words, and without columns that say nothing."""
        columns: dict[str, list[Any]] = {"model": [risk.model for risk in self.risks]}
        if len(self.risks) > len(self.bounds):
            columns["rows"] = [risk.rows for risk in self.risks]
        columns |= {
            "n": [risk.n for risk in self.risks],
            "at most": [min(_rounded_up(risk.bound), self.cap) for risk in self.risks],
            "Bernstein": [min(_rounded_up(risk.bernstein), self.cap) for risk in self.risks],
            "in sample": [float(f"{risk.capped_mean:.4g}") for risk in self.risks],
        }
        if self.capped:
            columns["cut off by the cap in the sample"] = [
                f"{100 * risk.cut_off:.3g} % of the mean, {risk.n_capped:,} row{'s' * (risk.n_capped != 1)}"
                for risk in self.risks
            ]
        return Table(**columns)


def _rounded_up(bound: float) -> float:
    """A bound as printed, with four digits.

    Examples
    --------
    >>> _rounded_up(1.23401), _rounded_up(1.234)
    (1.235, 1.234)
    """
    return float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(bound)))
