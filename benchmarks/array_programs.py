"""The timed functions of arrays, and their hand-written gradients, side by side.

    logistic, logistic_by_hand        the functions and gradients of `benchmarks.array_cases`

The functions are typical user code: NumPy calls, loops, arrays that are written to. The hand-written gradients do no
unnecessary work: products go through BLAS, values needed by a sweep are saved once, buffers are reused, and a loop with
independent iterations is differentiated iteration by iteration, so that nothing is saved from one to the next. This
module does not import zygote_py or compile anything.

The mixture model is the objective of ADBench (Srajer, Kukelova and Fitzgibbon, "A benchmark of selected algorithmic
differentiation tools on some problems in computer vision and machine learning", 2018): the log-likelihood of points
under a mixture of Gaussians with the weights `softmax(alphas)`, the means, and inverse covariances `Q.T @ Q`, with a
Wishart prior on these. A row of `factors` contains the logarithms of the diagonal of a lower triangular Q, then the
entries below the diagonal, column by column.
"""

from __future__ import annotations

import math

import numpy as np


def logsumexp(x):
    """Compute LogSumExp by NumPy calls; its hand-written gradient is `benchmarks.programs.logsumexp_by_hand`."""
    largest = np.max(x)
    return largest + np.log(np.sum(np.exp(x - largest)))


def logistic(w, x, y):
    """Return the mean loss of a logistic regression without intercept; the classes `y` are -1 and 1."""
    return np.mean(np.log1p(np.exp(-y * (x @ w))))


def logistic_by_hand(w, x, y):
    z = np.dot(x, w)
    n = len(z)
    for i in range(n):
        z[i] = -y[i] / (n * (1.0 + math.exp(y[i] * z[i])))
    return np.dot(z, x)


def perceptron(w1, b1, w2, b2, x, labels):
    """Return the mean cross-entropy of a perceptron with one hidden layer."""
    hidden = np.tanh(x @ w1 + b1)
    scores = hidden @ w2 + b2
    loss = 0.0
    for i in range(len(labels)):
        row = scores[i]
        largest = np.max(row)
        loss += largest + np.log(np.sum(np.exp(row - largest))) - row[labels[i]]
    return loss / len(labels)


def perceptron_by_hand(w1, b1, w2, b2, x, labels):
    """Differentiate `perceptron`; scores and hidden units are overwritten by their adjoints."""
    n, classes = len(labels), len(b2)
    hidden = np.dot(x, w1)
    for i in range(n):
        for j in range(len(b1)):
            hidden[i, j] = math.tanh(hidden[i, j] + b1[j])
    d2 = np.dot(hidden, w2)
    db2 = np.zeros_like(b2)
    for i in range(n):
        largest = d2[i, 0] + b2[0]
        for j in range(classes):
            d2[i, j] += b2[j]
            largest = max(largest, d2[i, j])
        total = 0.0
        for j in range(classes):
            d2[i, j] = math.exp(d2[i, j] - largest)
            total += d2[i, j]
        scale = 1.0 / (n * total)
        for j in range(classes):
            d2[i, j] *= scale
        d2[i, labels[i]] -= 1.0 / n
        for j in range(classes):
            db2[j] += d2[i, j]
    dw2 = np.dot(hidden.T, d2)
    d1 = np.dot(d2, w2.T)
    db1 = np.zeros_like(b1)
    for i in range(n):
        for j in range(len(b1)):
            d1[i, j] *= 1.0 - hidden[i, j] * hidden[i, j]
            db1[j] += d1[i, j]
    return np.dot(x.T, d1), db1, dw2, db2


DT, SOFTENING = 0.01, 0.05


def accelerate(q, mass, a):
    """Store the accelerations of bodies that attract each other in `a`."""
    a[:] = 0.0
    for i in range(len(mass)):
        for j in range(i + 1, len(mass)):
            x, y, z = q[j, 0] - q[i, 0], q[j, 1] - q[i, 1], q[j, 2] - q[i, 2]
            square = x * x + y * y + z * z + SOFTENING
            pull = 1.0 / (square * math.sqrt(square))
            a[i, 0] += mass[j] * pull * x
            a[i, 1] += mass[j] * pull * y
            a[i, 2] += mass[j] * pull * z
            a[j, 0] -= mass[i] * pull * x
            a[j, 1] -= mass[i] * pull * y
            a[j, 2] -= mass[i] * pull * z


def nbody_with(accelerate):
    """Return the leapfrog method with a compiled `accelerate`."""

    def nbody(q, v, mass, steps):
        """Return the sum of the squares of all positions and velocities after some steps."""
        q, v = q.copy(), v.copy()
        a = np.empty_like(q)
        accelerate(q, mass, a)
        for _ in range(steps):
            v += 0.5 * DT * a
            q += DT * v
            accelerate(q, mass, a)
            v += 0.5 * DT * a
        return np.sum(q * q) + np.sum(v * v)

    return nbody


def accelerate_and_keep(q, mass, a, pulls):
    """Store the accelerations as `accelerate` does, and what it computes with a root and a division in `pulls`."""
    a[:] = 0.0
    at = 0
    for i in range(len(mass)):
        for j in range(i + 1, len(mass)):
            x, y, z = q[j, 0] - q[i, 0], q[j, 1] - q[i, 1], q[j, 2] - q[i, 2]
            square = x * x + y * y + z * z + SOFTENING
            pull = 1.0 / (square * math.sqrt(square))
            pulls[at] = pull
            at += 1
            a[i, 0] += mass[j] * pull * x
            a[i, 1] += mass[j] * pull * y
            a[i, 2] += mass[j] * pull * z
            a[j, 0] -= mass[i] * pull * x
            a[j, 1] -= mass[i] * pull * y
            a[j, 2] -= mass[i] * pull * z


def accelerate_back(q, mass, pulls, da, dq, dmass):
    """Add the contributions of the accelerations' adjoints `da` to `dq` and `dmass`, given the `pulls`."""
    at = 0
    for i in range(len(mass)):
        for j in range(i + 1, len(mass)):
            x, y, z = q[j, 0] - q[i, 0], q[j, 1] - q[i, 1], q[j, 2] - q[i, 2]
            square = x * x + y * y + z * z + SOFTENING
            pull = pulls[at]
            at += 1
            onto_i = da[i, 0] * x + da[i, 1] * y + da[i, 2] * z
            onto_j = da[j, 0] * x + da[j, 1] * y + da[j, 2] * z
            dmass[j] += pull * onto_i
            dmass[i] -= pull * onto_j
            bend = -3.0 * pull / square * (mass[j] * onto_i - mass[i] * onto_j)
            dx = pull * (mass[j] * da[i, 0] - mass[i] * da[j, 0]) + bend * x
            dy = pull * (mass[j] * da[i, 1] - mass[i] * da[j, 1]) + bend * y
            dz = pull * (mass[j] * da[i, 2] - mass[i] * da[j, 2]) + bend * z
            dq[i, 0] -= dx
            dq[i, 1] -= dy
            dq[i, 2] -= dz
            dq[j, 0] += dx
            dq[j, 1] += dy
            dq[j, 2] += dz


def nbody_by_hand_with(accelerate_and_keep, accelerate_back):
    """Return the gradient of `nbody`. It saves the positions of each step and the pulls between them."""

    def nbody_by_hand(q, v, mass, steps):
        n = len(mass)
        v = v.copy()
        places = np.empty((steps + 1, n, 3))
        pulls = np.empty((steps + 1, n * (n - 1) // 2))
        places[0] = q
        a = np.empty((n, 3))
        accelerate_and_keep(places[0], mass, a, pulls[0])
        for k in range(steps):
            for i in range(n):
                for c in range(3):
                    v[i, c] += 0.5 * DT * a[i, c]
                    places[k + 1, i, c] = places[k, i, c] + DT * v[i, c]
            accelerate_and_keep(places[k + 1], mass, a, pulls[k + 1])
            for i in range(n):
                for c in range(3):
                    v[i, c] += 0.5 * DT * a[i, c]
        dq, dv, dmass = 2.0 * places[steps], v, np.zeros(n)
        da = a
        for i in range(n):
            for c in range(3):
                dv[i, c] *= 2.0
                da[i, c] = 0.5 * DT * dv[i, c]
        for k in range(steps, 0, -1):
            accelerate_back(places[k], mass, pulls[k], da, dq, dmass)
            half = 0.5 * DT if k == 1 else DT  # the acceleration between two steps contributes to both
            for i in range(n):
                for c in range(3):
                    dv[i, c] += DT * dq[i, c]
                    da[i, c] = half * dv[i, c]
        accelerate_back(places[0], mass, pulls[0], da, dq, dmass)
        return dq, dv, dmass

    return nbody_by_hand


def pairs(q, v, mass, steps):
    """Return the squares of positions after steps of bodies that attract each other, pair by pair."""
    q, v = q.copy(), v.copy()
    n = len(q)
    for _ in range(steps):
        for i in range(n):
            for k in range(3):
                q[i, k] += 0.5 * DT * v[i, k]
        for i in range(n):
            for j in range(i + 1, n):
                x, y, z = q[j, 0] - q[i, 0], q[j, 1] - q[i, 1], q[j, 2] - q[i, 2]
                square = x * x + y * y + z * z + SOFTENING
                pull = DT / (square * math.sqrt(square))
                of_i, of_j = mass[i] * pull, mass[j] * pull
                v[i, 0] += of_j * x
                v[i, 1] += of_j * y
                v[i, 2] += of_j * z
                v[j, 0] -= of_i * x
                v[j, 1] -= of_i * y
                v[j, 2] -= of_i * z
        for i in range(n):
            for k in range(3):
                q[i, k] += 0.5 * DT * v[i, k]
    total = 0.0
    for i in range(n):
        for k in range(3):
            total += q[i, k] * q[i, k]
    return total


def pairs_by_hand(q, v, mass, steps):
    """Differentiate `pairs` by the positions: of each pair its distances are saved, and the inverse of their square."""
    q, v = q.copy(), v.copy()
    n = len(q)
    saved = np.empty((steps, n * (n - 1) // 2, 4))
    for t in range(steps):
        for i in range(n):
            for k in range(3):
                q[i, k] += 0.5 * DT * v[i, k]
        pair = 0
        for i in range(n):
            for j in range(i + 1, n):
                x, y, z = q[j, 0] - q[i, 0], q[j, 1] - q[i, 1], q[j, 2] - q[i, 2]
                inverse = 1.0 / (x * x + y * y + z * z + SOFTENING)
                saved[t, pair, 0], saved[t, pair, 1], saved[t, pair, 2], saved[t, pair, 3] = x, y, z, inverse
                pair += 1
                pull = DT * inverse * math.sqrt(inverse)
                of_i, of_j = mass[i] * pull, mass[j] * pull
                v[i, 0] += of_j * x
                v[i, 1] += of_j * y
                v[i, 2] += of_j * z
                v[j, 0] -= of_i * x
                v[j, 1] -= of_i * y
                v[j, 2] -= of_i * z
        for i in range(n):
            for k in range(3):
                q[i, k] += 0.5 * DT * v[i, k]
    dq, dv = 2.0 * q, np.zeros_like(v)
    for t in range(steps - 1, -1, -1):
        for i in range(n):
            for k in range(3):
                dv[i, k] += 0.5 * DT * dq[i, k]
        pair = 0
        for i in range(n):
            for j in range(i + 1, n):
                x, y, z, inverse = saved[t, pair, 0], saved[t, pair, 1], saved[t, pair, 2], saved[t, pair, 3]
                pair += 1
                pull = DT * inverse * math.sqrt(inverse)
                dx = mass[j] * dv[i, 0] - mass[i] * dv[j, 0]
                dy = mass[j] * dv[i, 1] - mass[i] * dv[j, 1]
                dz = mass[j] * dv[i, 2] - mass[i] * dv[j, 2]
                along = -3.0 * pull * inverse * (dx * x + dy * y + dz * z)
                dx, dy, dz = pull * dx + along * x, pull * dy + along * y, pull * dz + along * z
                dq[j, 0] += dx
                dq[j, 1] += dy
                dq[j, 2] += dz
                dq[i, 0] -= dx
                dq[i, 1] -= dy
                dq[i, 2] -= dz
        for i in range(n):
            for k in range(3):
                dv[i, k] += 0.5 * DT * dq[i, k]
    return dq


def mixture(alphas, means, factors, x, gamma, m):
    n, d = x.shape
    components = len(alphas)
    diagonals = np.exp(factors[:, :d])
    log_determinants = np.sum(factors[:, :d], axis=1)
    centered, scaled, terms = np.empty(d), np.empty(d), np.empty(components)
    likelihood = 0.0
    for i in range(n):
        for k in range(components):
            for j in range(d):
                centered[j] = x[i, j] - means[k, j]
                scaled[j] = diagonals[k, j] * centered[j]
            at = d
            for j in range(d):
                for l in range(j + 1, d):  # noqa: E741
                    scaled[l] += factors[k, at] * centered[j]
                    at += 1
            square = 0.0
            for j in range(d):
                square += scaled[j] * scaled[j]
            terms[k] = alphas[k] + log_determinants[k] - 0.5 * square
        largest = np.max(terms)
        likelihood += largest + np.log(np.sum(np.exp(terms - largest)))
    largest = np.max(alphas)
    likelihood -= n * (largest + np.log(np.sum(np.exp(alphas - largest))) + 0.5 * d * math.log(2.0 * math.pi))
    freedom = d + m + 1
    constant = freedom * d * (math.log(gamma) - 0.5 * math.log(2.0)) - 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(d):
        constant -= math.lgamma(0.5 * (freedom - j))
    squares = np.sum(diagonals * diagonals) + np.sum(factors[:, d:] ** 2)
    prior = 0.5 * gamma * gamma * squares - m * np.sum(log_determinants) - components * constant
    return likelihood + prior


BLOCK = 128  # points that are worked on side by side


def mixture_by_hand(alphas, means, factors, x, gamma, m):
    """Differentiate the mixture for blocks of points: the innermost loops run over the points of a block, which are
    independent. Of each point the scaled differences to the means are saved.
    """
    n, d = x.shape
    components = len(alphas)
    lower, log_determinants = np.zeros((components, d, d)), np.zeros(components)
    for k in range(components):
        at = d
        for j in range(d):
            lower[k, j, j] = math.exp(factors[k, j])
            log_determinants[k] += factors[k, j]
            for i in range(j + 1, d):
                lower[k, i, j] = factors[k, at]
                at += 1
    dalphas, dmeans, dfactors = np.zeros(components), np.zeros((components, d)), np.zeros_like(factors)
    dlower = np.zeros((components, d, d))
    points, centered, scaled = np.empty((d, BLOCK)), np.empty((d, BLOCK)), np.empty((components, d, BLOCK))
    terms, largest, total, flow = np.empty((components, BLOCK)), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, n, BLOCK):
        size = min(BLOCK, n - first)
        for j in range(d):
            for i in range(size):
                points[j, i] = x[first + i, j]
        for i in range(size):
            largest[i], total[i] = -1e300, 0.0
        for k in range(components):
            for j in range(d):
                for i in range(size):
                    centered[j, i] = points[j, i] - means[k, j]
            for i in range(size):
                flow[i] = 0.0
            for r in range(d):
                factor = lower[k, r, r]
                for i in range(size):
                    scaled[k, r, i] = factor * centered[r, i]
                for j in range(r):
                    factor = lower[k, r, j]
                    for i in range(size):
                        scaled[k, r, i] += factor * centered[j, i]
                for i in range(size):
                    flow[i] += scaled[k, r, i] * scaled[k, r, i]
            constant = alphas[k] + log_determinants[k]
            for i in range(size):
                terms[k, i] = constant - 0.5 * flow[i]
                largest[i] = max(largest[i], terms[k, i])
        for k in range(components):
            for i in range(size):
                terms[k, i] = math.exp(terms[k, i] - largest[i])
                total[i] += terms[k, i]
        for i in range(size):
            total[i] = 1.0 / total[i]
        for k in range(components):
            weight = 0.0
            for i in range(size):
                terms[k, i] *= total[i]
                weight += terms[k, i]
            dalphas[k] += weight
            for j in range(d):
                for i in range(size):
                    centered[j, i] = points[j, i] - means[k, j]
            for r in range(d):
                sum_ = 0.0
                for i in range(size):
                    flow[i] = terms[k, i] * scaled[k, r, i]
                    sum_ += flow[i]
                for j in range(r + 1):
                    dmeans[k, j] += lower[k, r, j] * sum_
                    product = 0.0
                    for i in range(size):
                        product += flow[i] * centered[j, i]
                    dlower[k, r, j] -= product
    most, sum_ = alphas[0], 0.0
    for k in range(components):
        most = max(most, alphas[k])
    for k in range(components):
        sum_ += math.exp(alphas[k] - most)
    for k in range(components):
        weight, at = dalphas[k], d
        dalphas[k] = weight - n * math.exp(alphas[k] - most) / sum_
        for j in range(d):
            own = lower[k, j, j]
            dfactors[k, j] = weight + dlower[k, j, j] * own + gamma * gamma * own * own - m
            for i in range(j + 1, d):
                dfactors[k, at] = dlower[k, i, j] + gamma * gamma * factors[k, at]
                at += 1
    return dalphas, dmeans, dfactors
