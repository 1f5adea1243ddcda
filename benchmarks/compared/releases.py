"""Several releases, and releases of sampled records, against dp-accounting and PLD_accounting."""

from measuring import row

from compared.counts import noise_laws
from compared.peers import gaussian_allocation_epsilon_range, privacy_loss_distribution, two_laws
from shufflebounds.mechanisms import GaussianMechanism, LaplaceMechanism
from shufflebounds.sampling import RandomAllocation
from shufflebounds.shuffle import BinomialNoise, StrongerClones


def compose():
    """Return rows for releases of binomial noise: both bounds of eps, against dp-accounting's composition on a grid."""
    rows = []
    for times in (10, 100, 1000):
        for delta, grid in ((1e-6, 1e-4), (1e-6, 1e-6), (1e-50, 1e-4)):

            def theirs(times=times, delta=delta, grid=grid):
                return two_laws(*noise_laws(10**4), grid).self_compose(times).get_epsilon_for_delta(delta)

            many = BinomialNoise(10**4, 0.5).self_compose(times)
            gap = 1 - many.epsilon(delta, bound="lower") / many.epsilon(delta)
            rows.append(
                row(
                    f"{times} x noise eps, N=1e4, delta={delta:g}",
                    # Every call composes a new object, so that no cached value is used.
                    lambda t=times, d=delta: BinomialNoise(10**4, 0.5).self_compose(t).epsilon(d),
                    theirs if privacy_loss_distribution else None,
                    f"dp-accounting, grid {grid:g}; our lower bound is {gap:.1e} below",
                )
            )
    for grid in (1e-4, 1e-5):

        def laplace(grid=grid):
            one = privacy_loss_distribution.from_laplace_mechanism(10.0, value_discretization_interval=grid)
            return one.self_compose(100).get_epsilon_for_delta(1e-6)

        many = LaplaceMechanism(10.0).self_compose(100)
        gap = 1 - many.epsilon(1e-6, bound="lower") / many.epsilon(1e-6)
        rows.append(
            row(
                "100 x Laplace eps, scale 10, delta=1e-6",
                lambda: LaplaceMechanism(10.0).self_compose(100).epsilon(1e-6),
                laplace if privacy_loss_distribution else None,
                f"dp-accounting, grid {grid:g}; our lower bound is {gap:.1e} below",
            )
        )
    rows.append(row("100 x noise eps, N=1e9, delta=1e-6", lambda: BinomialNoise(10**9, 0.5).self_compose(100).epsilon(1e-6)))
    rows.append(row("100 x stronger clones, n=1e6 eps0=4", lambda: StrongerClones(10**6, 4.0).self_compose(100).epsilon(1e-6)))
    rows.append(row("30 x stronger clones, n=1e6 eps0=4: mu", lambda: StrongerClones(10**6, 4.0).self_compose(30).gdp_mu()))
    rows.append(row("the same: curve at 0.05", lambda: StrongerClones(10**6, 4.0).self_compose(30).tradeoff().beta(0.05)))
    return rows


def sampled():
    """Return rows for eps of subsampled and randomly allocated noise, as in training, against dp-accounting and PLD_accounting."""
    rows = []
    for rate, steps in ((0.01, 1000), (0.004, 5000)):

        def theirs(rate=rate, steps=steps):
            one = privacy_loss_distribution.from_gaussian_mechanism(1.0, value_discretization_interval=1e-4, sampling_prob=rate)
            return one.self_compose(steps).get_epsilon_for_delta(1e-6)

        lower = GaussianMechanism(1.0).subsampled(rate).self_compose(steps).epsilon(1e-6, bound="lower")
        rows.append(row(f"Gaussian, sigma 1, Poisson batches of {rate:g}, {steps} steps: eps(1e-6)",
                        lambda q=rate, t=steps: GaussianMechanism(1.0).subsampled(q).self_compose(t).epsilon(1e-6),
                        theirs if privacy_loss_distribution else None, f"dp-accounting, grid 1e-4; our lower side {lower:.8g}"))
    for steps in (100, 10**4):
        theirs, note = None, ""
        # With 1000 steps the other program takes twenty times as long.
        if gaussian_allocation_epsilon_range and steps == 100:

            def theirs(steps=steps):
                return gaussian_allocation_epsilon_range(delta=1e-6, sigma=1.0, num_steps=steps)[0]

            below = gaussian_allocation_epsilon_range(delta=1e-6, sigma=1.0, num_steps=steps)[1]
            note = f"PLD_accounting, both sides at its own accuracy, the lower one {below:.8g}; "
        lower = RandomAllocation(GaussianMechanism(1.0), steps).epsilon(1e-6, bound="lower")
        rows.append(row(f"Gaussian, sigma 1, one of {steps} steps allocated at random: eps(1e-6)",
                        lambda t=steps: RandomAllocation(GaussianMechanism(1.0), t).epsilon(1e-6),
                        theirs, f"{note}our lower side {lower:.8g}"))
    return rows
