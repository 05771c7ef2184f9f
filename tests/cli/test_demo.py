"""The demonstration: its loss against SciPy's integrator, its gradient against differences, and the whole run."""

from __future__ import annotations

import importlib.util
import re
import sys

import numba
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from zygote_py.cli import demo

FITTED = (0.540, 0.0272, 0.796, 0.0237)  # the minimum, found with differences and from ten starts


@pytest.fixture(scope="module")
def pelts():
    return demo.read_pelts()


def test_record(pelts):
    years, hare, lynx = pelts
    assert years.tolist() == list(range(1900, 1921))
    assert (hare[0], hare[-1], lynx[0], lynx[-1]) == (30.0, 24.7, 4.0, 8.6)
    assert hare.sum() == pytest.approx(715.7)
    assert lynx.sum() == pytest.approx(423.5)


def test_loss_in_plain_python_against_an_adaptive_integrator(pelts):
    years, hare, lynx = pelts
    theta = np.log([*FITTED, 34.6, 5.8])
    alpha, beta, gamma, delta = FITTED
    solution = solve_ivp(
        lambda t, s: [(alpha - beta * s[1]) * s[0], (delta * s[0] - gamma) * s[1]],
        (1900.0, 1920.0),
        np.exp(theta[4:]),
        t_eval=years,
        rtol=1e-10,
        atol=1e-10,
    )
    expected = ((np.log(solution.y) - np.log([hare, lynx])) ** 2).sum() / (2 * 0.25**2)
    assert demo.loss(theta, hare, lynx) == pytest.approx(expected, rel=1e-6)


def test_gradient_against_differences(pelts):
    from zygote_py import value_and_gradient

    _, hare, lynx = pelts
    loss = numba.njit(demo.loss)
    theta = demo.start_of(hare, lynx)
    value, found = value_and_gradient(demo.loss, wrt="theta")(theta, hare, lynx)
    assert value == loss(theta, hare, lynx)
    h = 1e-4
    for i, step in enumerate(h * np.eye(6)):
        near, far = (loss(theta + k * step, hare, lynx) - loss(theta - k * step, hare, lynx) for k in (1, 2))
        assert found[i] == pytest.approx((8 * near - far) / (12 * h), rel=1e-7)


def test_run(tmp_path, capsys):
    assert demo.run(tmp_path / "new" / "plot.png")
    printed = capsys.readouterr().out
    rates = [float(rate) for rate in re.search(r"fitted rates: (.*)", printed)[1].replace(",", "").split()[2::3]]
    assert rates == pytest.approx(FITTED, rel=5e-3)
    before, after = map(float, re.search(r"loss: (\S+) before, (\S+) after", printed).groups())
    assert before == pytest.approx(730.2293, abs=1e-3)
    assert after == pytest.approx(16.1493, abs=1e-3)
    assert float(re.search(r"ratio (\S+)", printed)[1]) > 0
    if importlib.util.find_spec("matplotlib"):
        assert (tmp_path / "new" / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_it_says_how_to_get_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    years, hare, lynx = demo.read_pelts()
    demo.draw(years, hare, lynx, demo.start_of(hare, lynx), tmp_path / "plot.png")
    assert "zygote-py[plot]" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
