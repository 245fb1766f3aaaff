"""The built wheel: its top level, its imports from site-packages, and a fitted model."""

import sys
import zipfile
from pathlib import Path

import numpy as np

import admiss
import admiss.datasets
import formulations

names = zipfile.ZipFile(sys.argv[1]).namelist()
top_level = {name.split("/")[0] for name in names}
expected = {"admiss", "formulations", f"admiss-{admiss.__version__}.dist-info"}
assert top_level == expected, f"the wheel has {sorted(top_level)} at top level"
for page in ("page.html", "parts.html", "comparison.html", "study.html", "script.js", "style.css"):
    assert f"admiss/report/templates/{page}" in names, f"the wheel lacks {page} of reports"
for package in (admiss, formulations):
    folder = Path(package.__file__).parent
    assert "site-packages" in folder.parts, f"{package.__name__} was imported from {folder}"
    assert (folder / "py.typed").exists(), f"{package.__name__} has no py.typed"

X = np.array([[1.0], [2.0], [3.0], [np.nan], [np.nan]])
model = admiss.AdaptiveRegressor(lam=0).fit(X, [1.0, 2.0, 3.0, 5.0, 7.0])
assert np.allclose(model.predict([[4.0], [np.nan]]), [4.0, 6.0])
assert admiss.datasets.list_datasets().n_rows == 63
print("the wheel is sound")
