"""Tables of a study for LaTeX, with the rules of the package booktabs."""

from collections.abc import Sequence

from admiss.study.sections import Section

SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "²": r"\textsuperscript{2}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    }
)


def latex(section: Section) -> str:
    r"""A section as a tabular: the first column is on the left, the others are on the right.

    Examples
    --------
    >>> print(latex(Section("Means", "", ["method", "R²"], [["a & b_1", "0.50"]])))
    % Means
    \begin{tabular}{lr}
    \toprule
    method & R\textsuperscript{2} \\
    \midrule
    a \& b\_1 & 0.50 \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    lines = [f"% {' '.join(section.title.split())}", rf"\begin{{tabular}}{{l{'r' * (len(section.header) - 1)}}}"]
    lines += [r"\toprule", _line(section.header), r"\midrule", *map(_line, section.rows), r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}", ""])


def _line(cells: Sequence[object]) -> str:
    return " & ".join(" ".join(str(cell).translate(SPECIAL).split()) for cell in cells) + r" \\"
