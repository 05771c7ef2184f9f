"""Derivations that replace the recorded one: custom rules, checkpoints, binomial schedules, reversible loops."""
