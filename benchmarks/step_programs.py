"""Functions that go forward step by step, and their hand-written gradients: networks, a heat equation, elimination.

    recurrent, recurrent_by_hand      the functions and gradients of `benchmarks.step_cases`

The hand-written gradients keep of each step what cannot be computed again for less, in arrays of the exact size, and
gather the products of all steps in one where that is possible. This module does not import zygote_py or compile
anything.
"""

from __future__ import annotations

import math

import numpy as np


def softmax(scores, by, targets):
    """Return the adjoints of the scores in the cross-entropy; they take the place of the scores."""
    for t in range(len(targets)):
        largest = -1e300
        for j in range(len(by)):
            scores[t, j] += by[j]
            largest = max(largest, scores[t, j])
        total = 0.0
        for j in range(len(by)):
            scores[t, j] = math.exp(scores[t, j] - largest)
            total += scores[t, j]
        inverse = 1.0 / total
        for j in range(len(by)):
            scores[t, j] *= inverse
        scores[t, targets[t]] -= 1.0
    return scores


def recurrent(wx, wh, wy, bh, by, start, symbols, targets):
    """Return the cross-entropy of a recurrent network that predicts the next of some symbols."""
    steps, units = len(symbols), len(start)
    states = np.empty((steps + 1, units))
    states[0] = start
    for t in range(steps):
        a = wh @ states[t]
        for i in range(units):
            states[t + 1, i] = math.tanh(a[i] + wx[i, symbols[t]] + bh[i])
    scores = states[1:] @ wy.T
    loss = 0.0
    for t in range(steps):
        largest = -1e300
        for j in range(len(by)):
            scores[t, j] += by[j]
            largest = max(largest, scores[t, j])
        total = 0.0
        for j in range(len(by)):
            total += math.exp(scores[t, j] - largest)
        loss += math.log(total) + largest - scores[t, targets[t]]
    return loss


def recurrent_by_hand(softmax):
    """Return the gradient of `recurrent` with a compiled `softmax`."""

    def recurrent_by_hand(wx, wh, wy, bh, by, start, symbols, targets):
        steps, units = len(symbols), len(start)
        states = np.empty((steps + 1, units))
        states[0] = start
        for t in range(steps):
            a = np.dot(wh, states[t])
            for i in range(units):
                states[t + 1, i] = math.tanh(a[i] + wx[i, symbols[t]] + bh[i])
        dscores = softmax(np.dot(states[1:], wy.T), by, targets)
        dwx, dbh, dby = np.zeros_like(wx), np.zeros(units), np.zeros(len(by))
        flows = np.dot(dscores, wy)
        later = np.zeros(units)
        for t in range(steps - 1, -1, -1):
            for j in range(len(by)):
                dby[j] += dscores[t, j]
            for i in range(units):
                h = states[t + 1, i]
                flow = (flows[t, i] + later[i]) * (1.0 - h * h)
                flows[t, i] = flow
                dbh[i] += flow
                dwx[i, symbols[t]] += flow
            if t > 0:
                later = np.dot(flows[t], wh)
        return dwx, np.dot(flows.T, states[:steps]), np.dot(dscores.T, states[1:]), dbh, dby

    return recurrent_by_hand


def lstm(wx, wh, b, wy, by, start, cell, symbols, targets):
    """Return the cross-entropy of an LSTM that predicts the next of some symbols."""
    steps, units = len(symbols), len(start)
    states, cells = np.empty((steps + 1, units)), np.empty((steps + 1, units))
    states[0], cells[0] = start, cell
    gates = np.empty((steps, 4, units))
    for t in range(steps):
        a = wh @ states[t]
        for q in range(len(b)):
            a[q] += wx[q, symbols[t]] + b[q]
        for i in range(units):
            gates[t, 0, i] = 1.0 / (1.0 + math.exp(-a[i]))
            gates[t, 1, i] = 1.0 / (1.0 + math.exp(-a[units + i]))
            gates[t, 2, i] = 1.0 / (1.0 + math.exp(-a[2 * units + i]))
            gates[t, 3, i] = math.tanh(a[3 * units + i])
        for i in range(units):
            cells[t + 1, i] = gates[t, 1, i] * cells[t, i] + gates[t, 0, i] * gates[t, 3, i]
            states[t + 1, i] = gates[t, 2, i] * math.tanh(cells[t + 1, i])
    scores = states[1:] @ wy.T
    loss = 0.0
    for t in range(steps):
        largest = -1e300
        for j in range(len(by)):
            scores[t, j] += by[j]
            largest = max(largest, scores[t, j])
        total = 0.0
        for j in range(len(by)):
            total += math.exp(scores[t, j] - largest)
        loss += math.log(total) + largest - scores[t, targets[t]]
    return loss


def lstm_by_hand(softmax):
    """Return the gradient of `lstm` with a compiled `softmax`."""

    def lstm_by_hand(wx, wh, b, wy, by, start, cell, symbols, targets):
        steps, units = len(symbols), len(start)
        states, cells = np.empty((steps + 1, units)), np.empty((steps + 1, units))
        states[0], cells[0] = start, cell
        gates = np.empty((steps, 5, units))
        for t in range(steps):
            a = np.dot(wh, states[t])
            for q in range(len(b)):
                a[q] += wx[q, symbols[t]] + b[q]
            for i in range(units):
                gates[t, 0, i] = 1.0 / (1.0 + math.exp(-a[i]))
                gates[t, 1, i] = 1.0 / (1.0 + math.exp(-a[units + i]))
                gates[t, 2, i] = 1.0 / (1.0 + math.exp(-a[2 * units + i]))
            for i in range(units):
                gates[t, 3, i] = math.tanh(a[3 * units + i])
            for i in range(units):
                c = gates[t, 1, i] * cells[t, i] + gates[t, 0, i] * gates[t, 3, i]
                u = math.tanh(c)
                cells[t + 1, i], gates[t, 4, i] = c, u
                states[t + 1, i] = gates[t, 2, i] * u
        dscores = softmax(np.dot(states[1:], wy.T), by, targets)
        dwx, db, dby = np.zeros_like(wx), np.zeros(len(b)), np.zeros(len(by))
        flows, parts = np.dot(dscores, wy), np.empty((steps, 4 * units))
        later, dcell = np.zeros(units), np.zeros(units)
        for t in range(steps - 1, -1, -1):
            for j in range(len(by)):
                dby[j] += dscores[t, j]
            for i in range(units):
                add, keep, show, new, u = gates[t, 0, i], gates[t, 1, i], gates[t, 2, i], gates[t, 3, i], gates[t, 4, i]
                flow = flows[t, i] + later[i]
                dc = dcell[i] + flow * show * (1.0 - u * u)
                parts[t, i] = dc * new * add * (1.0 - add)
                parts[t, units + i] = dc * cells[t, i] * keep * (1.0 - keep)
                parts[t, 2 * units + i] = flow * u * show * (1.0 - show)
                parts[t, 3 * units + i] = dc * add * (1.0 - new * new)
                dcell[i] = dc * keep
            for q in range(4 * units):
                db[q] += parts[t, q]
                dwx[q, symbols[t]] += parts[t, q]
            if t > 0:
                later = np.dot(parts[t], wh)
        return dwx, np.dot(parts.T, states[:steps]), db, np.dot(dscores.T, states[1:]), dby

    return lstm_by_hand


def heat(u, k, target, steps, dt):
    """Return the squared distance to a target after explicit steps of a heat equation with conductivities `k`."""
    n, m = u.shape
    for _ in range(steps):
        new = u.copy()
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                east = 0.5 * (k[i, j] + k[i, j + 1]) * (u[i, j + 1] - u[i, j])
                west = 0.5 * (k[i, j] + k[i, j - 1]) * (u[i, j] - u[i, j - 1])
                south = 0.5 * (k[i, j] + k[i + 1, j]) * (u[i + 1, j] - u[i, j])
                north = 0.5 * (k[i, j] + k[i - 1, j]) * (u[i, j] - u[i - 1, j])
                new[i, j] = u[i, j] + dt * (east - west + south - north)
        u = new
    return np.sum((u - target) ** 2)


def heat_by_hand(u, k, target, steps, dt):
    """Differentiate `heat`: every state is kept by reference, nothing else."""
    n, m = u.shape
    states = [u]
    for _ in range(steps):
        u = states[-1]
        new = u.copy()
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                east = 0.5 * (k[i, j] + k[i, j + 1]) * (u[i, j + 1] - u[i, j])
                west = 0.5 * (k[i, j] + k[i, j - 1]) * (u[i, j] - u[i, j - 1])
                south = 0.5 * (k[i, j] + k[i + 1, j]) * (u[i + 1, j] - u[i, j])
                north = 0.5 * (k[i, j] + k[i - 1, j]) * (u[i, j] - u[i - 1, j])
                new[i, j] = u[i, j] + dt * (east - west + south - north)
        states.append(new)
    du = states.pop() - target
    du *= 2.0
    dk = np.zeros_like(k)
    for _ in range(steps):
        u = states.pop()
        before = du.copy()
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                a, here, own = du[i, j] * dt * 0.5, u[i, j], k[i, j]
                to_e, to_w, to_s, to_n = u[i, j + 1] - here, u[i, j - 1] - here, u[i + 1, j] - here, u[i - 1, j] - here
                ke, kw, ks, kn = own + k[i, j + 1], own + k[i, j - 1], own + k[i + 1, j], own + k[i - 1, j]
                before[i, j + 1] += a * ke
                before[i, j - 1] += a * kw
                before[i + 1, j] += a * ks
                before[i - 1, j] += a * kn
                before[i, j] -= a * (ke + kw + ks + kn)
                dk[i, j + 1] += a * to_e
                dk[i, j - 1] += a * to_w
                dk[i + 1, j] += a * to_s
                dk[i - 1, j] += a * to_n
                dk[i, j] += a * (to_e + to_w + to_s + to_n)
        du = before
    return du, dk


def elimination(a):
    """Return the logarithm of the absolute determinant of a matrix, by elimination in place."""
    a = a.copy()
    n = len(a)
    total = 0.0
    for k in range(n):
        total += math.log(abs(a[k, k]))
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return total


def elimination_by_hand(a):
    """Differentiate `elimination`, as its loops run: an element that is a factor is not written to any more."""
    a = a.copy()
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    da = np.zeros_like(a)
    for k in range(n - 1, -1, -1):
        pivot = 1.0 / a[k, k]
        flow = pivot
        for i in range(k + 1, n):
            left = 0.0
            for j in range(k + 1, n):
                left -= da[i, j] * a[k, j]
                da[k, j] -= da[i, j] * a[i, k]
            da[i, k] = left * pivot
            flow -= left * pivot * a[i, k]
        da[k, k] = flow
    return da
