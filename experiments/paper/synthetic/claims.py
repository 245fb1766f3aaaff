"""Claims of the abstract, the introduction, Section 4.2 and Appendix C on synthetic data.

Units are signals (:mod:`experiments.paper.synthetic.measures`). "The optimal mu-impute-then-linearly-regress model"
of the paper is the affine intercept. A percentage of improvement may be one of points of R2 or of the other R2: the
abstract's is read in both ways, that of a figure in points.
"""

from experiments.paper.claims import TWO_TO_TEN, Claim
from experiments.paper.interpolation import SIZES
from experiments.paper.synthetic.measures import change, depth_change, extreme_lead, gain, lead, level_change

ADAPTIVE, JOINT, MEAN, MICE = "Adaptive LR - best", "Joint - best", "Mean - best", "mice - best"
INTERCEPT, AFFINE, FINITE = "Affine intercept", "Affine", "Finite"
SEQUENTIAL, DIRECT = (MEAN, MICE), ("CART MIA", "RF MIA", "XGBoost")
RF = "RF MIA"
BOTH = ("linear", "nn")
ITEM_1, ITEM_2, ITEM_3 = (f"Section 4.2, item {number}" for number in (1, 2, 3))
SUMMARY = "Section 4.2, on the main table"
EVEN_NN = "; (ii) performs very well even when the signal is a neural network"
APPENDIX = "Appendix C"
TIME = "Of our reduced grids and engine, not of the paper's."
CONTRADICTED = "The paper's own table says the opposite: 50 to 91 s for affine, 10 to 11 s for finite."

SYNTHETIC_CLAIMS: list[Claim] = [
    *(
        Claim("Abstract", f"strongly not missing at random: 2-10 % improvement ({words}, {name}; {reading})",
              f"{method} {sign} {MEAN}, censoring, {name}",
              TWO_TO_TEN,
              gain(method, signal) if reading == "percent" else lead([method], [MEAN], "censoring", [signal]))
        for reading, sign in (("points", "minus"), ("percent", "over"))
        for method, words in ((ADAPTIVE, "adaptive"), (JOINT, "joint"))
        for signal, name in (("linear", "linear"), ("nn", "NN"))),
    Claim(ITEM_1, "joint impute-then-regress is comparable with optimal mu-impute-then-linearly-regress (MCAR)",
          f"{JOINT} minus {INTERCEPT}, MCAR, linear",
          "comparable", lead([JOINT], [INTERCEPT], "mcar", ["linear"]), 0.02),
    Claim(ITEM_1, "joint impute-then-regress is comparable with optimal mu-impute-then-linearly-regress (censoring)",
          f"{JOINT} minus {INTERCEPT}, censoring, linear",
          "comparable", lead([JOINT], [INTERCEPT], "censoring", ["linear"]), 0.02),
    Claim(ITEM_2, "mean-impute-then-regress is competitive in MAR settings",
          f"{MEAN} minus the strongest of {INTERCEPT} and {JOINT}, MCAR, linear",
          "at least", lead([MEAN], [INTERCEPT, JOINT], "mcar", ["linear"]), 0.02),
    Claim(ITEM_2, "mean-impute-then-regress is suboptimal when data is censored: adaptive is significantly better",
          f"{ADAPTIVE} minus {MEAN}, censoring, linear",
          "greater", lead([ADAPTIVE], [MEAN], "censoring", ["linear"])),
    Claim(ITEM_2, "mean-impute-then-regress is suboptimal when data is censored: joint is significantly better",
          f"{JOINT} minus {MEAN}, censoring, linear",
          "greater", lead([JOINT], [MEAN], "censoring", ["linear"])),
    Claim(f"Introduction; {ITEM_2}", "of up to 10 % (on synthetic data)",
          f"{ADAPTIVE} minus {MEAN} at the missing fraction where this is largest, censoring, linear, minus .10",
          "comparable", extreme_lead(ADAPTIVE, MEAN, "p", max, 0.10), 0.02),
    Claim(ITEM_2, "optimal mu and joint are the best performing methods in MAR settings (linear signals)",
          f"the weaker of {INTERCEPT} and {JOINT} minus the strongest of {MEAN} and {RF}, MCAR, linear",
          "at least", lead([INTERCEPT, JOINT], [MEAN, RF], "mcar", ["linear"]), 0.01),
    Claim("Section 4.2, items 2 and 3",
          "optimal mu and joint are the best performing methods in censored settings, and dominate RF with MIA",
          f"the weaker of {INTERCEPT} and {JOINT} minus the strongest of {MEAN} and {RF}, censoring, linear",
          "greater", lead([INTERCEPT, JOINT], [MEAN, RF], "censoring", ["linear"])),
    Claim(ITEM_3, "RF with MIA is strictly worse than all other methods in the MCAR setting (linear signals)",
          f"the weakest of {INTERCEPT}, {JOINT} and {MEAN} minus {RF}, MCAR, linear",
          "greater", lead([INTERCEPT, JOINT, MEAN], [RF], "mcar", ["linear"])),
    Claim(ITEM_3, "when data is censored, RF with MIA improves moderately over mean impute-then-regress",
          f"{RF} minus {MEAN}, censoring, linear",
          "greater", lead([RF], [MEAN], "censoring", ["linear"])),
    Claim("Section 4.2, on n", "conclusions are consistent across all n from 40 to 1,000 (missing fraction .3)",
          f"{JOINT} minus {MEAN} at the n run where this is smallest, censoring, linear, p = .3",
          "greater", extreme_lead(JOINT, MEAN, "n", min)),
    Claim(SUMMARY, "sequential impute-then-regress is mostly competitive when the data is MCAR (mean)",
          f"{MEAN} minus the strongest of {ADAPTIVE} and {JOINT}, MCAR, both signals",
          "at least", lead([MEAN], [ADAPTIVE, JOINT], "mcar", BOTH), 0.02),
    Claim(SUMMARY, "sequential impute-then-regress is mostly competitive when the data is MCAR (mice)",
          f"{MICE} minus the strongest of {ADAPTIVE} and {JOINT}, MCAR, both signals",
          "at least", lead([MICE], [ADAPTIVE, JOINT], "mcar", BOTH), 0.02),
    Claim(SUMMARY, "their relative performance deteriorates when data is not MAR (mean)",
          f"{ADAPTIVE} minus {MEAN}: under censoring minus under MCAR, both signals",
          "greater", change([ADAPTIVE], [MEAN], BOTH)),
    Claim(SUMMARY, "their relative performance deteriorates when data is not MAR (mice)",
          f"{ADAPTIVE} minus {MICE}: under censoring minus under MCAR, both signals",
          "greater", change([ADAPTIVE], [MICE], BOTH)),
    Claim(SUMMARY, "methods trained on missing data directly under-perform when MCAR",
          "the weaker sequential method minus the strongest of CART MIA, RF MIA and XGBoost, MCAR, both signals",
          "greater", lead(SEQUENTIAL, DIRECT, "mcar", BOTH)),
    Claim(SUMMARY, "and become more relevant on censored data",
          f"{RF} minus the strongest sequential method: under censoring minus under MCAR, both signals",
          "greater", change([RF], SEQUENTIAL, BOTH)),
    *(
        Claim(SUMMARY,
              f"adaptive linear regression and joint impute-then-regress are among the best when MCAR ({words})"
              f"{EVEN_NN if (method, signal) == (ADAPTIVE, 'nn') else ''}",
              f"{method} minus the strongest benchmark, MCAR, {name}",
              "at least", lead([method], [*SEQUENTIAL, *DIRECT], "mcar", [signal]), 0.02)
        for method, words in ((ADAPTIVE, "adaptive"), (JOINT, "joint"))
        for signal, name in (("linear", "linear"), ("nn", "NN"))),
    *(
        Claim(SUMMARY,
              f"and dominate all the benchmarks when data is censored ({words})"
              f"{EVEN_NN if (method, signal) == (ADAPTIVE, 'nn') else ''}",
              f"{method} minus the strongest benchmark, censoring, {name}",
              "greater", lead([method], [*SEQUENTIAL, *DIRECT], "censoring", [signal]))
        for method, words in ((ADAPTIVE, "adaptive"), (JOINT, "joint"))
        for signal, name in (("linear", "linear"), ("nn", "NN"))),
    Claim(f"{SUMMARY}, (i)", "when data is not missing at random, R2 can be higher than in the MCAR case",
          f"{ADAPTIVE}: under censoring minus under MCAR, both signals",
          "greater", level_change(ADAPTIVE, BOTH)),
    Claim(f"{SUMMARY}, (iii)",
          "mean impute-then-regress is a strong benchmark despite the simplicity of the imputation (MCAR)",
          f"{MEAN} minus the strongest other benchmark, MCAR, both signals",
          "at least", lead([MEAN], [MICE, *DIRECT], "mcar", BOTH), 0.02),
    Claim(f"{SUMMARY}, (iii)", "thanks to the complexity of the downstream prediction rule",
          f"{MEAN} minus Mean - linear, MCAR, NN",
          "greater", lead([MEAN], ["Mean - linear"], "mcar", ["nn"])),
    Claim(APPENDIX, "NN signals: joint competes with mean impute-then-regress when data is MCAR",
          f"{JOINT} minus {MEAN}, MCAR, NN",
          "at least", lead([JOINT], [MEAN], "mcar", ["nn"]), 0.02),
    Claim(APPENDIX, "NN signals: joint outperforms mean impute-then-regress by 10 % or more under censoring",
          f"relative gain of {JOINT} over {MEAN}, censoring, NN, minus .10",
          "at least", gain(JOINT, "nn", 0.10), 0.02),
    *(
        Claim(APPENDIX, f"NN signals: RF performs like joint impute-then-regress ({name})",
              f"{RF} minus {JOINT}, {name}, NN",
              "comparable", lead([RF], [JOINT], mechanism, ["nn"]), 0.02)
        for mechanism, name in (("mcar", "MCAR"), ("censoring", "censoring"))),
    *(
        Claim(APPENDIX, f"affine intercept and affine are superior to finite in accuracy ({name})",
              f"the weaker of {INTERCEPT} and {AFFINE} minus {FINITE}, {name}, both signals",
              "greater", lead([INTERCEPT, AFFINE], [FINITE], mechanism, BOTH))
        for mechanism, name in (("mcar", "MCAR"), ("censoring", "censoring"))),
    *(
        Claim(APPENDIX, f"affine intercept and affine are superior to finite in time ({method})",
              f"seconds of {FINITE} minus those of {method}, MCAR, both signals",
              "greater", lead([FINITE], [method], "mcar", BOTH, "seconds"), note=note)
        for method, note in ((INTERCEPT, TIME), (AFFINE, f"{TIME} {CONTRADICTED}"))),
    *(
        Claim(APPENDIX, f"finite is significantly worse for n = 40-200 ({name}, missing fraction .3)",
              f"the weaker of {INTERCEPT} and {AFFINE} minus {FINITE}, n = 40 .. 200, p = .3, {name}, linear",
              "greater", lead([INTERCEPT, AFFINE], [FINITE], mechanism, ["linear"], sizes=SIZES[:9], fractions=[0.3]))
        for mechanism, name in (("mcar", "MCAR"), ("censoring", "censoring"))),
    *(
        Claim(APPENDIX, f"finite competes with the other two as n goes to 1,000 ({name}, missing fraction .3)",
              f"{FINITE} minus the stronger of {INTERCEPT} and {AFFINE}, n = 1000, p = .3, {name}, linear",
              "at least",
              lead([FINITE], [INTERCEPT, AFFINE], mechanism, ["linear"], sizes=SIZES[-1:], fractions=[0.3]), 0.02)
        for mechanism, name in (("mcar", "MCAR"), ("censoring", "censoring"))),
    *(
        Claim(APPENDIX, f"when n is small, the chosen depth of finite is higher ({name}, missing fraction .3)",
              f"selected depth at n = 40 .. 200 minus depth at n = 800 .. 1000, p = .3, {name}, linear",
              "greater", depth_change(mechanism))
        for mechanism, name in (("mcar", "MCAR"), ("censoring", "censoring"))),
]  # fmt: skip
