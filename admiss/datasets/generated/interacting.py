"""Generated data whose weights depend on an interaction of two indicators, which no single split reveals.

    X ~ N(0, I),   m_j ~ Bernoulli(fraction) independently,   parity = m_1 xor m_2
    y = sum_{j > 2} sign_j x_j (1 - m_j) + noise
    sign_j = 1 if the parity is 0; if it is 1, -1 for every second j

If fraction = 1/2, splitting on m_1 alone or on m_2 alone explains nothing, as both sides contain both parities, while
the tree that splits on both explains everything. A greedy search has no reason to start with them.
"""

import numpy as np
from sklearn.utils import check_random_state

from admiss.datasets.generated.signals import add_noise
from admiss.datasets.generated.synthetic import SyntheticData, split_rows


def make_interacting(
    n: int = 1000,
    d: int = 10,
    snr: float = 2.0,
    missing_fraction: float = 0.5,
    n_test: int = 5000,
    random_state: int | np.random.RandomState | None = None,
) -> SyntheticData:
    """Training and test rows whose weights depend on the parity of the first two indicators.

    Parameters
    ----------
    n, snr, n_test, random_state
        As in :func:`~admiss.datasets.generated.synthetic.make_synthetic`.
    d : int
        Features, at least 4.
    missing_fraction : float
        Share of values that are missing completely at random.

    Examples
    --------
    >>> data = make_interacting(n=100, random_state=0)
    >>> data.X_train.shape
    (100, 10)
    """
    if d < 4 or min(n, n_test) < 1 or not snr > 0 or not 0 <= missing_fraction <= 1:
        raise ValueError("make_interacting needs d >= 4, n and n_test >= 1, snr > 0 and a missing fraction in [0, 1].")
    rng = check_random_state(random_state)
    X = rng.normal(size=(n + n_test, d))
    M = rng.uniform(size=X.shape) < missing_fraction
    parity = M[:, 0] ^ M[:, 1]
    flipped = np.arange(2, d) % 2 == 0
    signs = np.where(parity[:, None] & flipped, -1.0, 1.0)
    f = (signs * np.where(M, 0.0, X)[:, 2:]).sum(axis=1)
    y, ceiling = add_noise(f, snr, rng)
    parts = split_rows(slice(n), slice(n, None), X=np.where(M, np.nan, X), X_full=X, y=y, signal=f)
    return SyntheticData(**parts, ceiling=ceiling)
