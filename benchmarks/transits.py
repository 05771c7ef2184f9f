"""The likelihood of a transit light curve: a Kepler orbit, and a star with power-2 limb darkening.

    log_likelihood(parameters, times, fluxes, exposure)

The intensity of the star at the distance r from its center is 1 - c (1 - (1 - r^2)^(alpha / 2)). The light that a
planet of the radius k covers at the distance z, both in radii of the star, is that of the algorithm "qpower2" in
P. Maxted and S. Gill, "qpower2: A fast and accurate algorithm for the computation of exoplanet transit light curves
with the power-2 limb-darkening law", Astronomy & Astrophysics 622, A33 (2019). It expands the intensity around points
of the covered area, with an error of less than 1e-4 of the star's light for k < 0.2.

This module does not import zygote_py or compile anything.
"""

from __future__ import annotations

import math

import numba
import numpy as np


@numba.njit
def eccentric_anomaly(mean, e):
    """Solve Kepler's equation by Newton's method."""
    anomaly = mean + e * math.sin(mean)
    for _ in range(50):
        change = (anomaly - e * math.sin(anomaly) - mean) / (1.0 - e * math.cos(anomaly))
        anomaly -= change
        if abs(change) < 1e-14:
            break
    return anomaly


@numba.njit
def true_anomaly(anomaly, e):
    """Return the angle from the periastron, for the eccentric anomaly."""
    sine = math.sqrt(1.0 - e * e) * math.sin(anomaly)
    return math.atan2(sine, math.cos(anomaly) - e)


@numba.njit
def mean_at_transit(e, omega):
    """Return the mean anomaly at the time of transit, when the true anomaly is 90 degrees minus `omega`."""
    sine = math.sqrt(1.0 - e * e) * math.cos(omega)
    cosine = e + math.sin(omega)
    anomaly = math.atan2(sine, cosine)
    return anomaly - e * math.sin(anomaly)


@numba.njit
def separation(time, epoch, period, axis, impact, e, omega):
    """Return the distance of the centers in the sky, in radii of the star; negative while the star hides the planet.

    `axis` is the semi-major axis, `impact` the distance at the time `epoch` of transit.
    """
    phase = (time - epoch) / period
    phase -= math.floor(phase + 0.5)
    mean = 2.0 * math.pi * phase + mean_at_transit(e, omega)
    angle = true_anomaly(eccentric_anomaly(mean, e), e)
    semilatus = 1.0 - e * e
    cosine = impact * (1.0 + e * math.sin(omega)) / (axis * semilatus)
    radius = axis * semilatus / (1.0 + e * math.cos(angle))
    sine = math.sin(omega + angle)
    distance = radius * math.sqrt(1.0 - sine * sine * (1.0 - cosine * cosine))
    if sine < 0.0:
        return -distance
    return distance


@numba.njit
def covered_inside(z, k, c, alpha):
    """Return the light that the planet covers when all of it is in front of the star, divided by the central one."""
    g = 0.5 * alpha
    s = 1.0 - z * z
    power = s**g
    intensity = 1.0 - c + c * power
    bend = 0.5 * alpha * c * s ** (g - 2.0) * ((alpha - 1.0) * z * z - 1.0)
    area = k * k
    return math.pi * area * (intensity + 0.25 * area * bend - 0.125 * alpha * c * area * s ** (g - 1.0))


@numba.njit
def expansion(r, c, alpha):
    """Return the intensity, its slope and half its second derivative at the distance `r` from the center."""
    g = 0.5 * alpha
    s = 1.0 - r * r
    value = 1.0 - c + c * s**g
    slope = -alpha * c * r * s ** (g - 1.0)
    half = 0.5 * alpha * c * s ** (g - 2.0) * ((alpha - 1.0) * r * r - 1.0)
    return value, slope, half


@numba.njit
def covered_by_planet(z, k, d, c, alpha):
    """Return the light covered on the planet's side of the chord at the distance `d` from the star's center."""
    g = 0.5 * alpha
    middle = 0.5 * (z - k + d)
    value, slope, half = expansion(middle, c, alpha)
    shift = z - middle
    a0 = value + slope * shift + half * shift * shift
    a1 = slope + 2.0 * half * shift
    q = (z - d) / k
    square = k * k - (d - z) * (d - z)
    width = math.sqrt(square)
    angle = math.acos(q)
    cubic = 0.25 * half * (d - z) * (2.0 * (d - z) ** 2 - k * k)
    first = (a0 * (d - z) - 2.0 / 3.0 * a1 * square + cubic) * width
    first += (a0 * k * k + 0.25 * half * k**4) * angle
    curve = 0.125 * angle + q * (q * q - 2.5) * math.sqrt(1.0 - q * q) / 12.0
    return first - alpha * c * (1.0 - middle * middle) ** (g - 1.0) * k**4 * curve


@numba.njit
def covered_by_limb(d, c, alpha):
    """Return the light covered between the chord at the distance `d` and the limb of the star."""
    g = 0.5 * alpha
    middle = 0.5 * (1.0 + d)
    value, slope, _ = expansion(middle, c, alpha)
    chord = math.sqrt(1.0 - d * d)
    first = (value - middle * slope) * math.acos(d)
    first += ((middle * d + 2.0 / 3.0 * (1.0 - d * d)) * slope - d * value) * chord
    return first - c * alpha * (1.0 - middle * middle) ** (g + 0.5) * (1.0 - d) / 3.0


@numba.njit
def flux(z, k, c, alpha):
    """Return the light of the star when the centers are `z` apart, in that of the whole star."""
    if z < 0.0 or z >= 1.0 + k:
        return 1.0
    central = (alpha + 2.0) / (math.pi * (alpha - c * alpha + 2.0))
    if z <= 1.0 - k:
        return 1.0 - central * covered_inside(z, k, c, alpha)
    d = (z * z - k * k + 1.0) / (2.0 * z)
    return 1.0 - central * (covered_by_planet(z, k, d, c, alpha) + covered_by_limb(d, c, alpha))


@numba.njit
def exposed(time, exposure, samples, orbit, k, c, alpha):
    """Return the mean flux during an exposure."""
    epoch, period, axis, impact, e, omega = orbit
    total = 0.0
    for n in range(samples):
        at = time + exposure * ((n + 0.5) / samples - 0.5)
        total += flux(separation(at, epoch, period, axis, impact, e, omega), k, c, alpha)
    return total / samples


def log_likelihood(parameters, times, fluxes, exposure, samples):
    """Return the logarithm of the likelihood of fluxes, with priors on limb darkening and eccentricity.

    The parameters are epoch, logarithm of the period, axis, impact, sqrt(e) cos(omega), sqrt(e) sin(omega), radius, the
    coefficients c and alpha, level and slope of the light outside of the transit, and the logarithm of the noise.
    """
    epoch, log_period, axis, impact, x, y, k, c, alpha, level, slope, log_noise = parameters
    e = x * x + y * y
    if e >= 0.95 or k <= 0.0 or k >= 0.5 or axis <= 1.0 + k:
        return -math.inf
    omega = math.atan2(y, x)
    orbit = (epoch, math.exp(log_period), axis, impact, e, omega)
    noise = math.exp(log_noise)
    middle = 0.5 * (times[0] + times[-1])
    total = 0.0
    for n in range(len(times)):
        model = exposed(times[n], exposure, samples, orbit, k, c, alpha)
        model *= level + slope * (times[n] - middle)
        residual = (fluxes[n] - model) / noise
        total -= 0.5 * residual * residual + log_noise + 0.5 * math.log(2.0 * math.pi)
    total -= 0.5 * ((c - 0.7) / 0.1) ** 2 + 0.5 * ((alpha - 0.7) / 0.2) ** 2
    if e > 1e-3:
        total += 0.1 * math.log1p(-e)
    return total


def example(count=40):
    """Return parameters, times, fluxes and exposures of a transit with noise."""
    rng = np.random.default_rng(5)
    parameters = (0.01, math.log(3.2), 8.5, 0.35, 0.2, 0.1, 0.1, 0.65, 0.75, 1.0, 0.001, math.log(2e-4))
    times = np.linspace(-0.12, 0.12, count)
    fluxes = 1.0 - 0.011 * (np.abs(times) < 0.055) + 2e-4 * rng.normal(size=count)
    return np.array(parameters), times, fluxes, 0.01, 3
