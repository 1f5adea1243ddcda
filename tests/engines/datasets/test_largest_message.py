"""Renyi divergences of shuffled messages from those of one message."""

import numpy as np

from shufflebounds._engines.datasets.largest_message import mean_renyi


def test_orders_between_whole_numbers_of_one_user_are_enclosed():
    # The message of a single user is shuffled with no other, so its divergences are those of the randomizer.
    p = 0.8

    def local(orders, *, upper):
        logs = np.log(p**orders * (1 - p) ** (1 - orders) + (1 - p) ** orders * p ** (1 - orders)) / (orders - 1)
        return logs * (1 + 1e-12 if upper else 1 - 1e-12)

    orders = np.array([2.05, 2.3, 2.7, 2.95, 3.5, 6.25, 11.9])
    bounds = mean_renyi(local, 1, orders)
    exact = local(orders, upper=True)
    assert (bounds.lower <= exact).all()
    assert (exact <= bounds.upper * (1 + 1e-9)).all()
    assert (bounds.upper - bounds.lower < 0.1 * exact).all()
