"""Claims of the abstract, the introduction, Section 4.2 and Appendix C on synthetic data.

Units are signals (:mod:`experiments.compare.synthetic_measures`). "The optimal mu-impute-then-linearly-regress model"
of the paper is the affine intercept. Percentages of improvement are relative, as those of the paper are; where a
claim is about a figure, they are points of R2.
"""

from experiments.compare.claims import Claim
from experiments.compare.interpolation import SIZES
from experiments.compare.synthetic_measures import change, depth_change, extreme_lead, gain, lead, level_change

ADAPTIVE, JOINT, MEAN, MICE = "Adaptive LR - best", "Joint - best", "Mean - best", "mice - best"
INTERCEPT, AFFINE, FINITE = "Affine intercept", "Affine", "Finite"
SEQUENTIAL, DIRECT = (MEAN, MICE), ("CART MIA", "RF MIA", "XGBoost")
RF = "RF MIA"
BOTH = ("linear", "nn")
ITEM_1, ITEM_2, ITEM_3 = (f"Section 4.2, item {number}" for number in (1, 2, 3))
SUMMARY, APPENDIX = "Section 4.2, on the main table", "Appendix C"

SYNTHETIC_CLAIMS: list[Claim] = [
    Claim(
        "Abstract",
        "strongly not missing at random: 2-10 % improvement (at least 2 % on synthetic data)",
        f"relative gain of {ADAPTIVE} over {MEAN}, censoring, linear, less .02",
        "greater",
        gain(ADAPTIVE, 0.02, "linear"),
    ),
    Claim(
        "Abstract",
        "strongly not missing at random: 2-10 % improvement (at least 2 % on synthetic data)",
        f"relative gain of {JOINT} over {MEAN}, censoring, NN, less .02",
        "greater",
        gain(JOINT, 0.02, "nn"),
    ),
    Claim(
        "Abstract and Introduction",
        "up to 10 % on synthetic data",
        f"relative gain of {ADAPTIVE} over {MEAN}, censoring, linear, less .10",
        "at least",
        gain(ADAPTIVE, 0.10, "linear"),
        0.02,
    ),
    Claim(
        ITEM_1,
        "joint impute-then-regress is comparable with optimal mu-impute-then-linearly-regress (MCAR)",
        f"{JOINT} less {INTERCEPT}, MCAR, linear",
        "comparable",
        lead([JOINT], [INTERCEPT], "mcar", ["linear"]),
        0.02,
    ),
    Claim(
        ITEM_1,
        "joint impute-then-regress is comparable with optimal mu-impute-then-linearly-regress (censoring)",
        f"{JOINT} less {INTERCEPT}, censoring, linear",
        "comparable",
        lead([JOINT], [INTERCEPT], "censoring", ["linear"]),
        0.02,
    ),
    Claim(
        ITEM_2,
        "mean-impute-then-regress is competitive in MAR settings",
        f"{MEAN} less the strongest of {INTERCEPT} and {JOINT}, MCAR, linear",
        "at least",
        lead([MEAN], [INTERCEPT, JOINT], "mcar", ["linear"]),
        0.02,
    ),
    Claim(
        ITEM_2,
        "mean-impute-then-regress is suboptimal when data is censored: adaptive is significantly better",
        f"{ADAPTIVE} less {MEAN}, censoring, linear",
        "greater",
        lead([ADAPTIVE], [MEAN], "censoring", ["linear"]),
    ),
    Claim(
        ITEM_2,
        "mean-impute-then-regress is suboptimal when data is censored: joint is significantly better",
        f"{JOINT} less {MEAN}, censoring, linear",
        "greater",
        lead([JOINT], [MEAN], "censoring", ["linear"]),
    ),
    Claim(
        ITEM_2,
        "of up to 10 %",
        f"{ADAPTIVE} less {MEAN} at the missing fraction where this is largest, censoring, linear, less .10",
        "at least",
        extreme_lead(ADAPTIVE, MEAN, "p", max, 0.10),
        0.02,
    ),
    Claim(
        ITEM_2,
        "optimal mu and joint are the best performing methods in MAR settings (linear signals)",
        f"the weaker of {INTERCEPT} and {JOINT} less the strongest of {MEAN} and {RF}, MCAR, linear",
        "at least",
        lead([INTERCEPT, JOINT], [MEAN, RF], "mcar", ["linear"]),
        0.01,
    ),
    Claim(
        ITEM_2,
        "optimal mu and joint are the best performing methods in censored settings (linear signals)",
        f"the weaker of {INTERCEPT} and {JOINT} less the strongest of {MEAN} and {RF}, censoring, linear",
        "greater",
        lead([INTERCEPT, JOINT], [MEAN, RF], "censoring", ["linear"]),
    ),
    Claim(
        ITEM_3,
        "RF with MIA is strictly worse than all other methods in the MCAR setting (linear signals)",
        f"the weakest of {INTERCEPT}, {JOINT} and {MEAN} less {RF}, MCAR, linear",
        "greater",
        lead([INTERCEPT, JOINT, MEAN], [RF], "mcar", ["linear"]),
    ),
    Claim(
        ITEM_3,
        "when data is censored, RF with MIA improves moderately over mean impute-then-regress",
        f"{RF} less {MEAN}, censoring, linear",
        "greater",
        lead([RF], [MEAN], "censoring", ["linear"]),
    ),
    Claim(
        ITEM_3,
        "but remains dominated by optimal mu-impute-then-regress and joint impute-then-regress",
        f"the weaker of {INTERCEPT} and {JOINT} less {RF}, censoring, linear",
        "greater",
        lead([INTERCEPT, JOINT], [RF], "censoring", ["linear"]),
    ),
    Claim(
        "Section 4.2, on n",
        "conclusions are consistent across all n from 40 to 1,000 (missing fraction .3)",
        f"{JOINT} less {MEAN} at the n run where this is smallest, censoring, linear, p = .3",
        "greater",
        extreme_lead(JOINT, MEAN, "n", min),
    ),
    Claim(
        SUMMARY,
        "sequential impute-then-regress is mostly competitive when the data is MCAR (mean)",
        f"{MEAN} less the strongest of {ADAPTIVE} and {JOINT}, MCAR, both signals",
        "at least",
        lead([MEAN], [ADAPTIVE, JOINT], "mcar", BOTH),
        0.02,
    ),
    Claim(
        SUMMARY,
        "sequential impute-then-regress is mostly competitive when the data is MCAR (mice)",
        f"{MICE} less the strongest of {ADAPTIVE} and {JOINT}, MCAR, both signals",
        "at least",
        lead([MICE], [ADAPTIVE, JOINT], "mcar", BOTH),
        0.02,
    ),
    Claim(
        SUMMARY,
        "their relative performance deteriorates when data is not MAR (mean)",
        f"{ADAPTIVE} less {MEAN}: under censoring less under MCAR, both signals",
        "greater",
        change([ADAPTIVE], [MEAN], BOTH),
    ),
    Claim(
        SUMMARY,
        "their relative performance deteriorates when data is not MAR (mice)",
        f"{ADAPTIVE} less {MICE}: under censoring less under MCAR, both signals",
        "greater",
        change([ADAPTIVE], [MICE], BOTH),
    ),
    Claim(
        SUMMARY,
        "methods trained on missing data directly under-perform when MCAR",
        "the weaker sequential method less the strongest of CART MIA, RF MIA and XGBoost, MCAR, both signals",
        "greater",
        lead(SEQUENTIAL, DIRECT, "mcar", BOTH),
    ),
    Claim(
        SUMMARY,
        "and become more relevant on censored data",
        f"{RF} less the strongest sequential method: under censoring less under MCAR, both signals",
        "greater",
        change([RF], SEQUENTIAL, BOTH),
    ),
    *(
        Claim(
            SUMMARY,
            f"adaptive linear regression and joint impute-then-regress are among the best when MCAR ({words})",
            f"{method} less the strongest benchmark, MCAR, {name}",
            "at least",
            lead([method], [*SEQUENTIAL, *DIRECT], "mcar", [signal]),
            0.02,
        )
        for method, words in ((ADAPTIVE, "adaptive"), (JOINT, "joint"))
        for signal, name in (("linear", "linear"), ("nn", "NN"))
    ),
    *(
        Claim(
            SUMMARY,
            f"and dominate all the benchmarks when data is censored ({words})",
            f"{method} less the strongest benchmark, censoring, {name}",
            "greater",
            lead([method], [*SEQUENTIAL, *DIRECT], "censoring", [signal]),
        )
        for method, words in ((ADAPTIVE, "adaptive"), (JOINT, "joint"))
        for signal, name in (("linear", "linear"), ("nn", "NN"))
    ),
    Claim(
        f"{SUMMARY}, (i)",
        "when data is not missing at random, R2 can be higher than in the MCAR case",
        f"{ADAPTIVE}: under censoring less under MCAR, both signals",
        "greater",
        level_change(ADAPTIVE, BOTH),
    ),
    Claim(
        f"{SUMMARY}, (ii)",
        "adaptive linear regression performs very well even when the signal is a neural network (MCAR)",
        f"{ADAPTIVE} less the strongest benchmark, MCAR, NN",
        "at least",
        lead([ADAPTIVE], [*SEQUENTIAL, *DIRECT], "mcar", ["nn"]),
        0.02,
    ),
    Claim(
        f"{SUMMARY}, (ii)",
        "adaptive linear regression performs very well even when the signal is a neural network (censoring)",
        f"{ADAPTIVE} less the strongest benchmark, censoring, NN",
        "at least",
        lead([ADAPTIVE], [*SEQUENTIAL, *DIRECT], "censoring", ["nn"]),
        0.02,
    ),
    Claim(
        f"{SUMMARY}, (iii)",
        "mean impute-then-regress is a strong benchmark despite the simplicity of the imputation (MCAR)",
        f"{MEAN} less the strongest other benchmark, MCAR, both signals",
        "at least",
        lead([MEAN], [MICE, *DIRECT], "mcar", BOTH),
        0.02,
    ),
    Claim(
        f"{SUMMARY}, (iii)",
        "thanks to the complexity of the downstream prediction rule",
        f"{MEAN} less Mean - linear, MCAR, NN",
        "greater",
        lead([MEAN], ["Mean - linear"], "mcar", ["nn"]),
    ),
    Claim(
        APPENDIX,
        "NN signals: joint competes with mean impute-then-regress when data is MCAR",
        f"{JOINT} less {MEAN}, MCAR, NN",
        "at least",
        lead([JOINT], [MEAN], "mcar", ["nn"]),
        0.02,
    ),
    Claim(
        APPENDIX,
        "NN signals: joint outperforms mean impute-then-regress by 10 % or more under censoring",
        f"relative gain of {JOINT} over {MEAN}, censoring, NN, less .10",
        "at least",
        gain(JOINT, 0.10, "nn"),
        0.02,
    ),
    *(
        Claim(
            APPENDIX,
            f"NN signals: RF performs like joint impute-then-regress ({name})",
            f"{RF} less {JOINT}, {name}, NN",
            "comparable",
            lead([RF], [JOINT], mechanism, ["nn"]),
            0.02,
        )
        for mechanism, name in (("mcar", "MCAR"), ("censoring", "censoring"))
    ),
    *(
        Claim(
            APPENDIX,
            f"affine intercept and affine are superior to finite in accuracy ({name})",
            f"the weaker of {INTERCEPT} and {AFFINE} less {FINITE}, {name}, both signals",
            "greater",
            lead([INTERCEPT, AFFINE], [FINITE], mechanism, BOTH),
        )
        for mechanism, name in (("mcar", "MCAR"), ("censoring", "censoring"))
    ),
    *(
        Claim(
            APPENDIX,
            f"affine intercept and affine are superior to finite in time ({method})",
            f"seconds of {FINITE} less those of {method}, MCAR, both signals",
            "greater",
            lead([FINITE], [method], "mcar", BOTH, "seconds"),
        )
        for method in (INTERCEPT, AFFINE)
    ),
    *(
        Claim(
            APPENDIX,
            f"finite is significantly worse for n = 40-200 ({name}, missing fraction .3)",
            f"the weaker of {INTERCEPT} and {AFFINE} less {FINITE}, n = 40 .. 200, p = .3, {name}, linear",
            "greater",
            lead([INTERCEPT, AFFINE], [FINITE], mechanism, ["linear"], sizes=SIZES[:9], fractions=[0.3]),
        )
        for mechanism, name in (("mcar", "MCAR"), ("censoring", "censoring"))
    ),
    *(
        Claim(
            APPENDIX,
            f"finite competes with the other two as n goes to 1,000 ({name}, missing fraction .3)",
            f"{FINITE} less the stronger of {INTERCEPT} and {AFFINE}, n = 1000, p = .3, {name}, linear",
            "at least",
            lead([FINITE], [INTERCEPT, AFFINE], mechanism, ["linear"], sizes=SIZES[-1:], fractions=[0.3]),
            0.02,
        )
        for mechanism, name in (("mcar", "MCAR"), ("censoring", "censoring"))
    ),
    *(
        Claim(
            APPENDIX,
            f"when n is small, the chosen depth of finite is higher ({name}, missing fraction .3)",
            f"depth at n = 40 .. 200 less depth at n = 800 .. 1000, p = .3, {name}, linear",
            "greater",
            depth_change(mechanism),
        )
        for mechanism, name in (("mcar", "MCAR"), ("censoring", "censoring"))
    ),
]
