"""The programs of the table of compile times compute what they should, and so do their gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import eikonal, transits
from zygote_py import gradient

pytestmark = pytest.mark.interpreted


def lens(z, k):
    """The area that two circles of the radii 1 and k have in common, from the textbook formula."""
    first = k * k * math.acos((z * z + k * k - 1.0) / (2.0 * z * k))
    second = math.acos((z * z + 1.0 - k * k) / (2.0 * z))
    product = (-z + k + 1.0) * (z + k - 1.0) * (z - k + 1.0) * (z + k + 1.0)
    return first + second - 0.5 * math.sqrt(product)


@pytest.mark.parametrize("k", [0.05, 0.3])
def test_a_planet_before_a_uniform_star_covers_its_area(k):
    assert transits.flux(0.3, k, 0.0, 0.7) == pytest.approx(1.0 - k * k, rel=1e-14)
    for z in (1.0 - 0.7 * k, 1.0, 1.0 + 0.9 * k):
        assert transits.flux(z, k, 0.0, 0.7) == pytest.approx(1.0 - lens(z, k) / math.pi, rel=1e-12)
    assert transits.flux(1.0 + k, k, 0.0, 0.7) == transits.flux(-0.1, k, 0.0, 0.7) == 1.0


@pytest.mark.parametrize("z", [0.0, 0.5, 0.85, 0.97, 1.03])
def test_the_light_of_a_star_with_limb_darkening_is_that_of_a_sum_over_its_disk(z):
    k, c, alpha, n = 0.08, 0.6, 0.8, 1200
    x, y = (np.arange(n) + 0.5) / n * 2 * k - k + z, (np.arange(n) + 0.5) / n * 2 * k - k
    distance = x[:, None] ** 2 + y**2
    covered = ((x[:, None] - z) ** 2 + y**2 < k * k) & (distance < 1.0)
    intensity = 1.0 - c + c * np.maximum(1.0 - distance, 0.0) ** (0.5 * alpha)
    whole = math.pi * (1.0 - c + c / (0.5 * alpha + 1.0))
    expected = np.sum(intensity * covered) * (2 * k / n) ** 2 / whole
    assert 1.0 - transits.flux(z, k, c, alpha) == pytest.approx(expected, abs=4e-5)


def test_a_planet_is_in_transit_at_its_epoch():
    orbit = (0.3, 3.0, 9.0, 0.4, 0.2, 0.7)
    assert transits.separation(0.3, *orbit) == pytest.approx(0.4, rel=1e-12)
    assert transits.separation(1.8, *orbit) < 0.0
    assert transits.separation(3.31, *orbit) == pytest.approx(transits.separation(0.31, *orbit), rel=1e-9)


@pytest.mark.parametrize("source", [(0.4, 0.3, 0.2), (0.43, 0.37, 0.22)])
def test_first_arrivals_in_a_homogeneous_medium(source):
    spacing = (0.1, 0.1, 0.1)
    times = eikonal.arrivals(np.full((8, 7, 6), 0.5), spacing, source, 2)
    places = 0.1 * np.stack(np.indices(times.shape), axis=-1)
    np.testing.assert_allclose(times, 0.5 * np.linalg.norm(places - source, axis=-1), atol=0.03)
    assert eikonal.interpolated(times, spacing, (0.15, 0.2, 0.3)) == pytest.approx(np.mean(times[1:3, 2, 3]))
    with pytest.raises(ValueError, match="not in the grid"):
        eikonal.interpolated(times, spacing, (0.9, 0.1, 0.1))


def test_first_arrivals_run_along_a_fast_layer():
    slowness = np.full((2, 20, 2), 1.0)
    slowness[1] = 0.2
    times = eikonal.arrivals(slowness, (0.1, 0.1, 0.1), (0.0, 0.0, 0.0), 2)
    refracted = 0.2 * 1.9 + 2 * 0.1 * math.sqrt(1.0 - 0.2**2)
    assert times[0, 19, 0] == pytest.approx(refracted, rel=0.02)


@pytest.mark.parametrize(
    ("function", "args"),
    [(transits.log_likelihood, transits.example(7)), (eikonal.misfit, eikonal.example())],
    ids=["transit", "eikonal"],
)
def test_gradients(function, args):
    """Compare with differences along a direction; the steps are small, since the times have many kinks."""
    first, *rest = args
    direction = np.random.default_rng(1).normal(size=first.shape)
    ahead, behind = (function(first + step * direction, *rest) for step in (1e-6, -1e-6))
    gradients = gradient(function)(*args)
    assert np.sum(gradients[0] * direction) == pytest.approx((ahead - behind) / 2e-6, rel=1e-5)
