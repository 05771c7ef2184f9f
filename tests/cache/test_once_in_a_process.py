"""Equal derivatives are compiled once in a process, however often they are made."""

from __future__ import annotations

import gc
import importlib
import pickle
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import numpy as np
import pytest
from numba.core import event

from zygote_py import DifferentiationError, cache, gradient, hessian, pullback
from zygote_py.cache import environment, folder

pytestmark = pytest.mark.optimised  # code that is not optimised is not kept


@pytest.fixture(params=["folder", "memory"])
def place(request, tmp_path, monkeypatch):
    folder.PROCESS.clear()
    monkeypatch.setattr(folder, "_switched_on", True)
    monkeypatch.setattr(environment.numba_adapter, "is_extended", lambda: False)  # by other tests
    monkeypatch.setattr(environment, "registered", list)
    for name in ("ZYGOTE_PY_VERIFY", "ZYGOTE_PY_DUMP"):  # with which nothing is kept
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ZYGOTE_PY_CACHE", "0" if request.param == "memory" else "1")
    monkeypatch.setenv("ZYGOTE_PY_CACHE_DIR", str(tmp_path / "cache"))
    return request.param


def made(scale):
    return lambda x: scale * x * x * x


def slope(scale):
    return gradient(made(scale))(2.0)


def curvature(scale):
    return hessian(made(scale))(2.0)


def pulled(scale):
    value, back = pullback(made(scale), 2.0)
    assert value == 8.0 * scale
    return back()[0]


def pulled_again(scale):
    _, back = pullback(made(scale), 2.0)
    return pickle.loads(cloudpickle.dumps(back))(1.0)[0]


@pytest.mark.parametrize(
    ("run", "expected"),
    [(slope, 12.0), (curvature, 12.0), (pulled, 12.0), (pulled_again, 12.0)],
    ids=["gradient", "hessian", "pullback", "pickled"],
)
def test_each_object_after_the_first_compiles_nothing(place, run, expected):
    assert run(1.0) == expected
    with event.install_recorder("numba:run_pass") as recorded:
        for scale in (2.0, 3.0, 4.0, 5.0):
            assert run(scale) == scale * expected
            gc.collect(0)  # what was made since: all of what the suite holds takes a second each time
    assert not recorded.buffer


def test_the_code_of_a_function_counts(place):
    assert gradient(lambda x: x * x)(3.0) == 6.0
    assert gradient(lambda x: x * x + x)(3.0) == 7.0
    assert pullback(lambda x: x * x, 3.0)[1]() == (6.0,)
    assert pullback(lambda x: x * x + x, 3.0)[1]() == (7.0,)
    assert gradient(lambda x: x * x)(np.float32(3.0)) == 6.0


def test_a_module_that_is_loaded_again(place, tmp_path, monkeypatch):
    text = "from typing import NamedTuple\n\n\nclass Pair(NamedTuple):\n    a: float\n    b: float\n"
    (tmp_path / "loaded_again.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("loaded_again")

    def f(x):
        return module.Pair(2.0 * x, 3.0 * x)

    for _ in range(2):
        value, back = pullback(f, 1.5)
        assert type(value) is module.Pair
        assert back(module.Pair(1.0, 0.0)) == (2.0,)
        importlib.reload(module)


def test_a_pickled_pullback_of_a_function_that_has_changed(place):
    def made_with(n):
        power = n

        def set_power(value):
            nonlocal power
            power = value

        return (lambda x: x**power), set_power

    f, set_power = made_with(2)
    _, back = pullback(f, 1.5)
    assert pickle.loads(cloudpickle.dumps(back))() == (3.0,)
    set_power(3)
    assert back() == (3.0,)
    data = cloudpickle.dumps(back)
    with pytest.raises(DifferentiationError, match="was made with other code or constants than the function has now"):
        pickle.loads(data)


def test_in_threads(place):
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(pulled, map(float, range(1, 9)))) == [12.0 * scale for scale in range(1, 9)]


def test_what_a_pullback_keeps_has_a_type_for_each_layout(place):
    def f(a, x):
        a[0, 1] *= x
        return a @ np.array([x, 1.0])

    for a in (np.array([[1.0, 2.0], [3.0, 4.0]]), np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])):
        _, back = pullback(f, a, 3.0)
        da, dx = back(np.array([1.0, 10.0]), a=np.zeros((2, 2)))
        np.testing.assert_allclose(da, [[3.0, 3.0], [30.0, 10.0]])
        assert dx == 1.0 + 2.0 + 30.0
    assert cache.PROCESS is folder.PROCESS
