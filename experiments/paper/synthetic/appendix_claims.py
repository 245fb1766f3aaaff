"""Claims of Appendix C on synthetic data: NN signals, and the levels of adaptivity. Units are signals."""

from experiments.paper.claims import Claim
from experiments.paper.interpolation import SIZES
from experiments.paper.synthetic.claims import AFFINE, BOTH, FINITE, INTERCEPT, JOINT, MEAN, RF
from experiments.paper.synthetic.measures import depth_change, gain, lead

APPENDIX = "Appendix C"
TIME = "Of our reduced grids and engine, not of the paper's."
CONTRADICTED = "The paper's own table says the opposite: 50 to 91 s for affine, 10 to 11 s for finite."

APPENDIX_CLAIMS: list[Claim] = [
    Claim(
        APPENDIX,
        "NN signals: joint competes with mean impute-then-regress when data is MCAR",
        f"{JOINT} minus {MEAN}, MCAR, NN",
        "at least",
        lead([JOINT], [MEAN], "mcar", ["nn"]),
        0.02,
    ),
    Claim(
        APPENDIX,
        "NN signals: joint outperforms mean impute-then-regress by 10 % or more under censoring",
        f"relative gain of {JOINT} over {MEAN}, censoring, NN, minus .10",
        "at least",
        gain(JOINT, "nn", 0.10),
        0.02,
    ),
    *(
        Claim(
            APPENDIX,
            f"NN signals: RF performs like joint impute-then-regress ({name})",
            f"{RF} minus {JOINT}, {name}, NN",
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
            f"the weaker of {INTERCEPT} and {AFFINE} minus {FINITE}, {name}, both signals",
            "greater",
            lead([INTERCEPT, AFFINE], [FINITE], mechanism, BOTH),
        )
        for mechanism, name in (("mcar", "MCAR"), ("censoring", "censoring"))
    ),
    *(
        Claim(
            APPENDIX,
            f"affine intercept and affine are superior to finite in time ({method})",
            f"seconds of {FINITE} minus those of {method}, MCAR, both signals",
            "greater",
            lead([FINITE], [method], "mcar", BOTH, "seconds"),
            note=note,
        )
        for method, note in ((INTERCEPT, TIME), (AFFINE, f"{TIME} {CONTRADICTED}"))
    ),
    *(
        Claim(
            APPENDIX,
            f"finite is significantly worse for n = 40-200 ({name}, missing fraction .3)",
            f"the weaker of {INTERCEPT} and {AFFINE} minus {FINITE}, n = 40 .. 200, p = .3, {name}, linear",
            "greater",
            lead([INTERCEPT, AFFINE], [FINITE], mechanism, ["linear"], sizes=SIZES[:9], fractions=[0.3]),
        )
        for mechanism, name in (("mcar", "MCAR"), ("censoring", "censoring"))
    ),
    *(
        Claim(
            APPENDIX,
            f"finite competes with the other two as n goes to 1,000 ({name}, missing fraction .3)",
            f"{FINITE} minus the stronger of {INTERCEPT} and {AFFINE}, n = 1000, p = .3, {name}, linear",
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
            f"selected depth at n = 40 .. 200 minus depth at n = 800 .. 1000, p = .3, {name}, linear",
            "greater",
            depth_change(mechanism),
        )
        for mechanism, name in (("mcar", "MCAR"), ("censoring", "censoring"))
    ),
]
