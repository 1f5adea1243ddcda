"""Several releases, and releases of sampled records, against other accountants."""

from measuring import row

from compared.counts import noise_laws
from compared.peers import (
    PoissonSubsampledGaussianMechanism,
    PRVAccountant,
    gaussian_allocation_epsilon_range,
    get_beta_from_pld,
    get_epsilon_gaussian,
    opake,
    privacy_loss_distribution,
    two_laws,
)
from shufflebounds.mechanisms import GaussianMechanism, LaplaceMechanism
from shufflebounds.sampling import RandomAllocation
from shufflebounds.shuffle import BinomialNoise, StrongerClones


def compose():
    """Return rows for releases of binomial noise, against dp-accounting's composition on a grid of about the same accuracy."""
    rows = []
    for times in (10, 100, 1000):
        for delta, grid, rtol in ((1e-6, 1e-4, 1e-2), (1e-6, 1e-6, 1e-5), (1e-50, 1e-4, 1e-2)):

            def theirs(times=times, delta=delta, grid=grid):
                return two_laws(*noise_laws(10**4), grid).self_compose(times).get_epsilon_for_delta(delta)

            many = BinomialNoise(10**4, 0.5).self_compose(times, rtol=rtol)
            gap = 1 - many.epsilon(delta, bound="lower") / many.epsilon(delta)
            rows.append(
                row(
                    f"{times} x noise eps, N=1e4, delta={delta:g}, rtol {rtol:g}",
                    # Every call composes a new object, so that no cached value is used.
                    lambda t=times, d=delta, r=rtol: BinomialNoise(10**4, 0.5).self_compose(t, rtol=r).epsilon(d),
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


def dp_sgd(sigma, rate, steps, delta):
    """Return rows for both bounds of eps of Poisson-sampled Gaussian noise, each beside one other program at one accuracy."""
    def ours(rtol=1e-5):
        many = GaussianMechanism(sigma).subsampled(rate).self_compose(steps, rtol=rtol)
        return many.epsilon(delta), many.epsilon(delta, bound="lower")

    def dp_accounting(grid):
        one = privacy_loss_distribution.from_gaussian_mechanism(sigma, value_discretization_interval=grid, sampling_prob=rate)
        return one.self_compose(steps).get_epsilon_for_delta(delta)

    def of_opake(grid):
        noise = opake.gaussian_pld(sigma, config=opake.DiscretizationConfig(discretization=grid))
        return opake.poisson_pld(noise, rate).self_compose(steps).epsilon_at(delta)

    def prv(width):
        mechanism = PoissonSubsampledGaussianMechanism(noise_multiplier=sigma, sampling_probability=rate)
        accountant = PRVAccountant(prvs=mechanism, max_self_compositions=steps, eps_error=width, delta_error=delta * 1e-4)
        return accountant.compute_epsilon(delta=delta, num_self_compositions=steps)[2]

    rows = []
    for program, module, job, accuracies in (
        ("dp-accounting, grid", privacy_loss_distribution, dp_accounting, (1e-3, 1e-4)),
        ("opake, grid", opake, of_opake, (1e-3, 1e-4)),
        ("prv-accountant, error", PRVAccountant, prv, (0.1, 0.01)),
    ):
        for accuracy, rtol in zip(accuracies, (1e-3, 1e-5), strict=True):
            task = f"sigma {sigma:g}, rate {rate:g}, {steps} steps: eps({delta:g}), both bounds at rtol {rtol:g}"
            theirs = (lambda accuracy=accuracy, job=job: job(accuracy)) if module else None
            upper, lower = ours(rtol)
            timed = row(task, lambda rtol=rtol: ours(rtol), theirs, f"{program} {accuracy:g}, upper bound only", show=None)
            peer = f"{theirs():.8g}" if theirs else ""
            rows.append((task, f"{lower:.8g} .. {upper:.8g}", peer, *timed[3:]))
    return rows


def sampled():
    """Return rows for eps of subsampled and randomly allocated noise, as in training, against other accountants."""
    rows = [*dp_sgd(1.0, 0.01, 1000, 1e-6), *dp_sgd(0.8, 0.001, 10**5, 1e-6)]
    for steps in (100, 10**4):
        theirs, note = None, ""
        # With 1000 steps the other program takes twenty times as long.
        if gaussian_allocation_epsilon_range and steps == 100:

            def theirs(steps=steps):
                return gaussian_allocation_epsilon_range(delta=1e-6, sigma=1.0, num_steps=steps)[0]

            below = gaussian_allocation_epsilon_range(delta=1e-6, sigma=1.0, num_steps=steps)[1]
            note = f"PLD_accounting, both bounds at its own accuracy, the lower one {below:.8g}; "
        lower = RandomAllocation(GaussianMechanism(1.0), steps).epsilon(1e-6, bound="lower")
        rows.append(row(f"sigma 1, one of {steps} steps allocated at random: eps(1e-6)",
                        lambda t=steps: RandomAllocation(GaussianMechanism(1.0), t).epsilon(1e-6),
                        theirs, f"{note}our lower bound {lower:.8g}"))
    one = get_beta_from_pld and privacy_loss_distribution

    def curve():
        noise = privacy_loss_distribution.from_gaussian_mechanism(1.0, value_discretization_interval=1e-4, sampling_prob=0.01)
        return float(get_beta_from_pld(noise.self_compose(1000), 0.05))

    rows.append(row("sigma 1, rate 0.01, 1000 steps: beta(0.05)",
                    lambda: GaussianMechanism(1.0).subsampled(0.01).self_compose(1000).tradeoff().beta(0.05),
                    curve if one else None, "riskcal on a dp-accounting PLD, grid 1e-4"))
    rows.append(row("sigma 2, one release: eps(1e-6)", lambda: GaussianMechanism(2.0).epsilon(1e-6),
                    (lambda: get_epsilon_gaussian(2.0, 1e-6)) if get_epsilon_gaussian else None, "dp-accounting, closed form"))
    return rows
