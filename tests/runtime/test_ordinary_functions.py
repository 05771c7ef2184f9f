"""Gradients are functions like any other: pickled, copied, shared by threads, sent to other processes."""

from __future__ import annotations

import copy
import math
import multiprocessing
import pickle
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit

from tests.runtime import shared_gradients as shared
from zygote_py import gradient, pullback, value_and_gradient

D_CURVE = math.sin(1.0) + math.cos(1.0)


# Pickle


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_by_name(protocol):
    df = pickle.loads(pickle.dumps(shared.d_curve, protocol))
    assert df.primal is shared.curve
    assert df(1.0) == pytest.approx(D_CURVE)
    dx = pickle.loads(pickle.dumps(shared.d_weighed, protocol))
    np.testing.assert_array_equal(dx(3.0), 36.0)
    assert repr(dx) == repr(shared.d_weighed)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("df", [shared.decorated, shared.decorated_twice, shared.Holder.held])
def test_a_decorated_function_is_found_under_its_name(df, protocol):
    assert pickle.loads(pickle.dumps(df, protocol)) is df


def test_other_gradients_of_a_decorated_function():
    again = pickle.loads(pickle.dumps(shared.of_decorated))
    assert again is not shared.decorated
    assert again.primal is shared.decorated.primal
    assert again(2.0, 3.0) == (18.0, 9.0)


def test_after_it_was_called():
    shared.decorated(2.0, 3.0)
    gradient(shared.curve)(1.0)
    df = gradient(shared.curve)
    df(1.0)
    data = pickle.dumps(df)
    assert len(data) < 500  # and nothing of what was compiled
    assert pickle.loads(data)(1.0) == df(1.0)


def test_a_lambda_needs_cloudpickle():
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(gradient(lambda x: x * x))


def test_cloudpickle_of_lambdas_and_closures():
    cloudpickle = pytest.importorskip("cloudpickle")
    k = 3.0
    weights = np.array([1.0, 2.0])
    df = value_and_gradient(lambda x, a: k * x * x + a[0] * weights[1], wrt=("x", 1))
    assert df(2.0, np.ones(2))[0] == 14.0
    again = pickle.loads(cloudpickle.dumps(df))
    k = 5.0
    weights[1] = 10.0
    value, (dx, da) = again(2.0, np.ones(2))  # with the captured values as they were
    assert (value, dx) == (14.0, 12.0)
    np.testing.assert_array_equal(da, [2.0, 0.0])
    assert df(2.0, np.ones(2))[0] == 30.0


def test_cloudpickle_keeps_the_options_of_njit():
    cloudpickle = pytest.importorskip("cloudpickle")
    df = gradient(njit(error_model="numpy")(lambda x: 1.0 / x))
    assert pickle.loads(cloudpickle.dumps(df))(0.0) == -math.inf


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_copies(make):
    df = shared.d_curve
    assert make(df)(1.0) == pytest.approx(D_CURVE)
    assert make({"df": df})["df"](1.0) == pytest.approx(D_CURVE)


def test_a_pullback_is_pickled_with_the_arguments_as_they_were():
    x = np.array([1.0, 2.0])
    value, back = pullback(shared.weighed, 3.0, 2)
    again = pickle.loads(pickle.dumps(back))
    assert again(1.0) == back(1.0) == (36.0, None)
    value, back = pullback(total, x)
    data = pickle.dumps(back)
    x[:] = 0.0
    np.testing.assert_array_equal(pickle.loads(data)(2.0)[0], [4.0, 8.0])
    assert value == 5.0


def total(x):
    return np.sum(x * x)


# Threads


def run_in_threads(count, work):
    """Run `work(number)` in so many threads that start together; none may take more than two minutes."""
    barrier = threading.Barrier(count)
    errors = []

    def run(number):
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120.0)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    assert not errors, errors


K = 2.0
POWER = 2


def test_threads_with_new_and_old_signatures():
    plain = gradient(lambda x, y: x * y * y)
    captured = gradient(lambda x, y: K * x * y**POWER)
    arguments = [
        (3.0, 2.0),
        (np.float32(3.0), 2.0),
        (3.0, np.float32(2.0)),
        (3.0, 2),
        (np.float32(3.0), 2),
        (np.float32(3.0), np.float32(2.0)),
    ]
    assert plain(*arguments[0]) == (4.0, 12.0)

    def work(number):
        for turn in range(3 * len(arguments)):
            x, y = arguments[(number + turn) % len(arguments)]
            dy = None if isinstance(y, int) else 12.0
            assert plain(x, y) == (4.0, dy)
            assert captured(x, y) == (8.0, dy and 24.0)
            if turn == number:
                assert "def" in plain.source(x, y)
                assert "define" in captured.inspect_llvm(x, y)

    run_in_threads(8, work)


def test_threads_while_a_constant_changes(monkeypatch):
    df = gradient(lambda x: K * x**POWER)
    seen = set()

    def work(number):
        for turn in range(6):
            if number == 0:
                monkeypatch.setitem(globals(), "POWER", 2 + turn % 2)
            seen.add(df(3.0))

    run_in_threads(4, work)
    assert seen <= {12.0, 54.0}
    monkeypatch.setitem(globals(), "POWER", 4)
    assert df(1.0) == 8.0


def test_threads_compile_and_call_from_compiled_code():
    df = gradient(lambda x: K * x * x)

    def work(number):
        step = njit(lambda x: x - 0.1 * df(x))
        assert step(np.float64(1.0)) == pytest.approx(0.6)
        assert df(np.float32(1.0) if number % 2 else 1) == 4.0

    run_in_threads(4, work)


def test_calls_do_not_wait_for_the_compiler():
    from zygote_py import numba_adapter

    dx = gradient(lambda x: x * x)
    captured = gradient(lambda x: K * x**POWER)
    assert (dx(3.0), captured(3.0)) == (6.0, 12.0)
    found = []
    with numba_adapter.COMPILER_LOCK:
        thread = threading.Thread(target=lambda: found.extend([dx(3.0), captured(3.0)]), daemon=True)
        thread.start()
        thread.join(60.0)
    assert found == [6.0, 12.0]


# Other processes


def expected():
    return [18.0, D_CURVE, 36.0]


def jobs():
    return [(shared.Holder.held, 6**0.5), (shared.d_curve, 1.0), (shared.d_weighed, 3.0)]


def test_concurrent_futures():
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        found = list(pool.map(shared.call, *zip(*jobs(), strict=True)))
        back = pool.submit(shared.pulled, 1.0).result()
    np.testing.assert_allclose(found, expected())
    assert back(1.0)[0] == pytest.approx(D_CURVE)
    with ThreadPoolExecutor(4) as pool:
        np.testing.assert_allclose(list(pool.map(shared.d_curve, [1.0] * 8)), D_CURVE)


def test_multiprocessing_spawn():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_allclose(pool.map(shared.d_curve, [1.0, 1.0]), D_CURVE)
        np.testing.assert_allclose(pool.starmap(shared.decorated, [(2.0, 3.0)]), [(9.0, 12.0)])


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib(backend):
    joblib = pytest.importorskip("joblib")
    k = 5.0
    parallel = joblib.Parallel(n_jobs=2, backend=backend)
    found = parallel(joblib.delayed(df)(x) for df, x in [*jobs(), (gradient(lambda x: k * x * x), 2.0)])
    np.testing.assert_allclose(found, [*expected(), 20.0])
    made = parallel(joblib.delayed(gradient)(shared.scaled(n)) for n in (2.0, 3.0))
    assert [df(1.0) for df in made] == [4.0, 6.0]


@pytest.mark.parametrize("pool", ["multiprocessing", pytest.param("joblib", marks=pytest.mark.long)])
def test_functions_of_the_main_program(tmp_path, pool):
    pytest.importorskip("joblib")
    calls = {
        "multiprocessing": """
            import multiprocessing
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(df, [1.0]), pool.map(dg, [1.0]))
        """,
        "joblib": """
            import joblib
            run = joblib.Parallel(n_jobs=2)
            print(run([joblib.delayed(df)(1.0)]), run([joblib.delayed(dg)(1.0)]))
        """,
    }
    program = """\
        import numpy as np
        from zygote_py import gradient
        SCALE = np.array([3.0])

        @gradient
        def df(x):
            return SCALE[0] * x * x

        def g(x):
            return 2.0 * x

        dg = gradient(g)
        if __name__ == "__main__":
    """
    path = tmp_path / "main_program.py"
    path.write_text(textwrap.dedent(program) + textwrap.indent(textwrap.dedent(calls[pool]), "    "))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[6.0] [2.0]", done.stderr
