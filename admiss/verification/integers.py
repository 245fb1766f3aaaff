"""Floating-point numbers as integers, so that sums of their products are exact.

A float is an integer times a power of 2. Column j of a matrix is N_j 2^-e_j with integers N_j, and with weights
s = N_s 2^-e_s

    sum_i s_i z_ij z_ik  =  2^-(e_j + e_k + e_s)  (N_j' diag(N_s) N_k),

which python-flint computes without rounding.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import fmpz_mat

from formulations.arrays import FloatArray, IntArray


class Integers(NamedTuple):
    """Integers ``numbers`` of the given shape, row by row; column j stands for numbers 2^-exponents[j]."""

    numbers: list[int]
    shape: tuple[int, int]
    exponents: list[int]

    def rows(self, chosen: IntArray) -> list[int]:
        """The numbers of some rows, row by row."""
        width = self.shape[1]
        return [number for i in chosen.tolist() for number in self.numbers[i * width : (i + 1) * width]]

    def matrix(self) -> fmpz_mat:
        """All numbers as a matrix of flint."""
        return fmpz_mat(*self.shape, self.numbers)


def integers_of(values: FloatArray) -> Integers:
    """The columns of a matrix of finite floats as integers, each with its own exponent.

    Examples
    --------
    >>> integers_of(np.array([[0.5, 3.0], [2.0, -8.0]]))
    Integers(numbers=[1, 3, 4, -8], shape=(2, 2), exponents=[1, 0])
    """
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    twos = np.frexp((whole & -whole).astype(float))[1] - 1  # trailing zeros
    is_zero = whole == 0
    whole >>= np.where(is_zero, 0, twos)
    exponent = np.where(is_zero, np.iinfo(np.int32).max, exponent - 53 + twos).astype(np.int64)
    least = exponent.min(axis=0, initial=np.iinfo(np.int32).max)
    least[least == np.iinfo(np.int32).max] = 0  # a column of zeros
    shift = np.where(is_zero, 0, exponent - least)
    if shift.max(initial=0) <= 9:  # 53 bits, shifted
        numbers = (whole << shift).ravel().tolist()
    else:
        numbers = [n << k for n, k in zip(whole.ravel().tolist(), shift.ravel().tolist(), strict=True)]
    return Integers(numbers, (values.shape[0], values.shape[1]), (-least).tolist())


def power_of_two(exponent: int) -> Fraction:
    """2 to an integer power, exactly.

    Examples
    --------
    >>> power_of_two(-2)
    Fraction(1, 4)
    """
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)
