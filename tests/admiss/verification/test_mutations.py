"""Wrong certificates, each wrong in one way, are all rejected; the right ones are verified."""

import copy
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from admiss import (
    AdaptiveClassifier,
    AdaptiveRegressor,
    AdaptiveStackClassifier,
    AdaptiveStackRegressor,
    FiniteRegressor,
    verify,
)
from admiss.datasets import make_synthetic
from admiss.partition import BoxPartition, Greedy, OptimalTree, PatternGroups

Mutation = Callable[[Any], None]


@cache
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    made = make_synthetic(n=300, d=5, rank=3, n_active=3, random_state=0)
    return made.X_train, made.y_train, np.random.default_rng(0).integers(1, 4, len(made.y_train)) / 2


KINDS: dict[str, Any] = {
    "tree": FiniteRegressor(OptimalTree(2, min_rows=20), ridge=1.0, center=False, scale=False),
    "centred tree": FiniteRegressor(OptimalTree(2, min_rows=20), ridge=1.0),
    "tree, ridge 0": FiniteRegressor(OptimalTree(3, max_leaves=4), ridge=0.0, scale=True),
    "greedy": FiniteRegressor(Greedy(2), ridge=1.0, leaf_model="static"),
    "boxes": FiniteRegressor(BoxPartition(2, max_leaves=4), ridge=1.0, ridge_scale="sample"),
    "groups": FiniteRegressor(PatternGroups(3, min_rows=12), ridge=1e-3, ridge_scale="sample"),
    "affine": AdaptiveRegressor("affine", lam=0.5, l1_ratio=0.5),
    "affine, not centred": AdaptiveRegressor("affine", lam=0.5, l1_ratio=0.5, center=False),
    "lasso": AdaptiveRegressor("affine", lam=0.5, l1_ratio=1.0),
    "without penalty": AdaptiveRegressor("affine", lam=0.0),
    "polynomial": AdaptiveRegressor("polynomial", lam=0.1, penalty_weights="authors"),
    "cells": AdaptiveRegressor("fully_adaptive", lam=0.1),
    "quantile": AdaptiveRegressor(loss="quantile", lam=0.1),
    "logistic": AdaptiveClassifier("affine", lam=0.5),
    "three classes": AdaptiveClassifier("affine_intercept", lam=0.1, class_weight={"a": 1.0, "b": 2.0, "c": 1.5}),
    "stack": AdaptiveStackRegressor(["affine_intercept", "affine"], shrinkage=0.0, random_state=0),
    "stack of classes": AdaptiveStackClassifier(["affine_intercept", "affine"], random_state=0),
}


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y, s = data()
    if name == "groups":
        X = np.column_stack([X[:, :3], np.nan_to_num(X[:, 3:])])
    if "classes" in name:
        y = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]
    return X, y > 0 if name == "logistic" else y, s


@cache
def fitted(name: str) -> Any:
    return KINDS[name].fit(*rows_of(name))


@pytest.mark.parametrize("name", KINDS)
def test_right_certificates_are_verified_and_their_files(name: str, tmp_path: Path) -> None:
    model, rows = fitted(name), rows_of(name)
    outcome = verify(model, *rows)
    assert outcome, str(outcome)
    assert str(outcome).startswith("verified")
    low, high = outcome.objective
    assert low <= high
    if outcome.optimum is not None:
        assert outcome.optimum[0] <= outcome.optimum[1]
        assert model.certificate_.bound <= outcome.optimum[1]
    model.certificate_.save(tmp_path / "proof.npz")
    assert [part.name for part in tmp_path.iterdir()] == ["proof.npz"]
    from_file = verify(tmp_path / "proof.npz", *rows)
    assert replace(from_file, seconds=0.0) == replace(outcome, seconds=0.0)
    # a model holds no trace of its data but the digest of a stack
    assert ("digest" in model.certificate_.evidence) == name.startswith("stack")


def certificate(**changes: Any) -> Mutation:
    """Values that replace those of the certificate; functions are of the old certificate."""

    def mutate(model: Any) -> None:
        old = model.certificate_
        values = {key: value(old) if callable(value) else value for key, value in changes.items()}
        model.certificate_ = replace(old, **values)

    return mutate


def partition(**changes: Any) -> Mutation:
    def mutate(model: Any) -> None:
        old = model.partition_
        model.partition_ = replace(old, **{key: value(old) for key, value in changes.items()})

    return mutate


def attribute(name: str, change: Callable[[Any], Any]) -> Mutation:
    def mutate(model: Any) -> None:
        setattr(model, name, change(getattr(model, name)))

    return mutate


def parameters(**values: Any) -> Mutation:
    return lambda model: model.set_params(**values)


def without_the_last_leaf(model: Any) -> None:
    old, last = model.partition_, model.partition_.n_leaves - 1
    model.partition_ = replace(old, boxes=old.boxes[:-1], leaf=np.where(old.leaf == last, -1, old.leaf))
    for name in ("leaf_costs_", "leaf_weights_", "leaf_intercepts_"):
        setattr(model, name, getattr(model, name)[:-1])
    cost = float(model.leaf_costs_.sum())
    model.certificate_ = replace(model.certificate_, objective=cost, bound=cost)


def another_tree(tree: Any) -> Any:
    feature, observed, missing = tree
    return (feature + 1) % 5, observed, missing


def swapped(array: np.ndarray) -> np.ndarray:
    return array[[1, 0, *range(2, len(array))]]


def greedy_as_optimal(model: Any) -> None:
    """The greedy tree with its own cost as a bound, as if it came from the exact method."""
    greedy = FiniteRegressor(Greedy(2, min_rows=20), ridge=1.0, center=False, scale=False).fit(*data())
    assert greedy.certificate_.objective > model.certificate_.objective * (1 + 1e-6)
    for name in ("partition_", "leaf_costs_", "leaf_weights_", "leaf_intercepts_"):
        setattr(model, name, getattr(greedy, name))
    cost = greedy.certificate_.objective
    model.certificate_ = replace(model.certificate_, objective=cost, bound=cost * (1 - 1e-12), status="optimal")


def coordinates(name: str, change: Callable[[Any], Any]) -> Mutation:
    """Another origin, scale or unit of the features in the leaves."""
    return attribute("leaf_features_", lambda old: replace(old, **{name: change(getattr(old, name))}))


def moved_centre(design: Any) -> Any:
    return replace(design, centre=design.centre + 1e-6 * design.spread)


def scaled_dual(factor: float) -> Mutation:
    return certificate(dual=lambda old: factor * old.dual)


def higher(old: Any) -> float:
    return float(old.bound) * (1 + 1e-6)


UP, DOWN = 1 + 1e-6, 1 - 1e-6
PROVEN = "above what is proven of the optimum"
both_higher = certificate(bound=higher, objective=lambda old: old.objective * (1 + 1e-6))
FALSE: dict[str, tuple[str, Mutation, str]] = {
    "bound raised": ("tree", certificate(bound=higher), PROVEN),
    "bound raised, boxes": ("boxes", certificate(bound=higher), PROVEN),
    "bound raised, groups": ("groups", certificate(bound=higher), PROVEN),
    "bound raised, regression": ("affine", certificate(bound=higher), PROVEN),
    "bound raised, logistic": ("logistic", certificate(bound=higher), PROVEN),
    "bound raised, stack": ("stack", certificate(bound=higher), PROVEN),
    "bound and objective raised": ("tree", both_higher, "not"),
    "a bound for a heuristic": ("greedy", certificate(bound=lambda old: old.objective), PROVEN),
    "objective lowered": ("tree", certificate(objective=lambda old: old.objective * DOWN), "objective is"),
    "objective raised": ("tree", certificate(objective=lambda old: old.objective * UP), "objective is"),
    "objective not a number": ("tree", certificate(objective=np.nan), "not a number"),
    "status forged": ("tree", certificate(bound=lambda old: old.bound * (1 - 1e-6)), "gap is not closed"),
    "status forged, greedy": ("greedy", certificate(status="optimal"), "gap is not closed"),
    "tolerance forged": (
        "tree", certificate(bound=lambda old: old.bound * (1 - 1e-6), tolerance=1e9), "gap is not closed"
    ),
    "another partition's cost": ("tree", greedy_as_optimal, PROVEN),
    "a leaf dropped": ("tree", without_the_last_leaf, "a pattern has no leaf"),
    "models of two leaves swapped": ("tree", attribute("leaf_weights_", swapped), "coefficients of leaf"),
    "costs of two leaves swapped": ("tree", attribute("leaf_costs_", swapped), "leaf 0 costs"),
    "labels of two leaves swapped": (
        "tree", partition(leaf=lambda old: swapped(np.arange(old.n_leaves))[old.leaf]), "patterns of a leaf"
    ),
    "another tree": ("tree", partition(tree=lambda old: another_tree(old.tree)), "patterns of a leaf|not allowed"),
    "not a tree": ("tree", partition(is_tree=lambda old: False), "not those of a tree"),
    "other patterns": ("tree", partition(patterns=lambda old: ~old.patterns), "patterns of the partition"),
    "boxes overlap": ("boxes", partition(boxes=lambda old: [old.boxes[0][:-1], *old.boxes[1:]]), "of a leaf"),
    "a pattern in another group": (
        "groups", partition(leaf=lambda old: np.where(np.arange(len(old.leaf)) == 0, 1 - old.leaf, old.leaf)), "costs"
    ),
    "an intercept moved": ("tree", attribute("leaf_intercepts_", lambda b: b + 0.01), "coefficients of leaf"),
    "other ridge": ("tree", parameters(ridge=1.01), "costs"),
    "other leaf model": ("boxes", parameters(leaf_model="static"), "leaf models"),
    "other scale of the ridge": ("tree", parameters(ridge_scale="sample"), "costs"),
    "scaled features": ("tree", parameters(scale=True), "standard deviation"),
    "scales forged": ("tree, ridge 0", coordinates("scale", lambda scale: scale * 1.001), "standard deviation"),
    "centred features": ("tree", parameters(center=True), "mean of its observed values"),
    "features not centred": ("centred tree", parameters(center=False), "features are centred"),
    "centre forged": ("centred tree", coordinates("centre", lambda centre: centre + 1e-6), "mean of its observed"),
    "centre 0 forged": ("centred tree", coordinates("centre", np.zeros_like), "mean of its observed values"),
    "centre not a number": ("centred tree", coordinates("centre", lambda centre: centre * np.nan), "not a number"),
    "unit forged": ("centred tree", coordinates("unit", lambda unit: unit * 1.5), "power of two"),
    "unit 0 forged": ("centred tree", coordinates("unit", np.zeros_like), "power of two"),
    "negative unit forged": ("centred tree", coordinates("unit", np.negative), "power of two"),
    "unit without a ridge forged": ("centred tree", coordinates("unit", lambda unit: unit * 2.0**600), "ridge"),
    "unit of infinite ridge forged": ("centred tree", coordinates("unit", lambda unit: unit / 2.0**600), "ridge"),
    "units of another number": ("centred tree", coordinates("unit", lambda unit: unit[1:]), "number of features"),
    "centre forged, regression": ("affine", attribute("design_", moved_centre), "mean of its observed values"),
    "centred features, regression": ("affine, not centred", parameters(center=True), "mean of its observed values"),
    "features not centred, regression": ("affine", parameters(center=False), "features are centred"),
    "too many leaves": ("tree", parameters(partitioner__max_leaves=2), "more than the 2"),
    "too deep": ("tree", parameters(partitioner__max_depth=1), "more than 1"),
    "leaves too small": ("tree", parameters(partitioner__min_rows=70), "fewer than 70"),
    "split not allowed": ("tree", parameters(partitioner__split_features=[4]), "split is not allowed|literals"),
    "larger class": ("tree", parameters(partitioner__max_depth=3, partitioner__min_rows=5), PROVEN),
    "dual point scaled": ("affine", scaled_dual(0.99), PROVEN),
    "dual point scaled, lasso": ("lasso", scaled_dual(1.01), PROVEN),
    "dual point scaled, logistic": ("logistic", scaled_dual(0.99), PROVEN),
    "a coefficient not a number": ("affine", attribute("coefficients_", lambda w: w * np.nan), "coefficients"),
    "coefficients moved": ("affine", attribute("coefficients_", lambda w: w + 0.01), "objective is"),
    "a coefficient dropped": ("affine", attribute("coefficients_", lambda w: w[1:]), "not those of the columns"),
    "other lam": ("affine", parameters(lam=0.501), "objective is|above what is proven"),
    "other ratio": ("affine", parameters(l1_ratio=0.4), "objective is"),
    "other penalty of adaptive columns": ("affine", parameters(adaptive_penalty=1.1), "objective is"),
    "no intercept": ("affine, not centred", parameters(fit_intercept=False), "not those of the columns"),
    "no intercept, centred": ("affine", parameters(fit_intercept=False), "features are centred"),
    "weights of a stack swapped": ("stack", attribute("combination_", swapped), "objective is"),
    "weights of a stack not convex": ("stack", attribute("combination_", lambda w: w * 1.1), "convex combination"),
    "held-out predictions changed": ("stack", attribute("held_out_", lambda Z: Z * 1.001), "objective is"),
}  # fmt: skip


@pytest.mark.parametrize("mutation", FALSE)
def test_false_certificates_are_rejected(mutation: str) -> None:
    name, mutate, reason = FALSE[mutation]
    model = copy.deepcopy(fitted(name))
    # the digest of a stack would find many of them at once
    model.certificate_ = replace(model.certificate_, evidence={})
    mutate(model)
    outcome = verify(model, *rows_of(name))
    assert not outcome
    assert str(outcome).startswith("not verified: ")
    assert "nothing was found to be wrong" not in outcome.reason
    assert re.search(reason, outcome.reason), outcome.reason


@pytest.mark.parametrize("change", ["a value", "a missing value", "a target", "a weight"])
@pytest.mark.parametrize("name", KINDS)
def test_other_data_are_rejected(name: str, change: str) -> None:
    X, y, s = (part.copy() for part in rows_of(name))
    i, j = np.argwhere(~np.isnan(X))[7]
    if change == "a value":
        X[i, j] += 1.0
    elif change == "a missing value":
        X[i, j] = np.nan
    elif change == "a weight":
        s[i] += 0.5
    else:
        y[i] = y[i] + 1.0 if y.dtype == float else y[y != y[i]][0]
    outcome = verify(fitted(name), X, y, s)
    assert not outcome
    assert ("digest" in outcome.reason) == name.startswith("stack")
