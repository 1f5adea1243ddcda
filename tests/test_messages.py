"""Error messages of frequent mistakes: each names the argument, its value and the valid range, and says what to do."""

import math

import numpy as np
import pytest

import shufflebounds
from shufflebounds import DominatingPair, composition, mechanisms, published, sampling, selection, shuffle, tails
from shufflebounds.cli.command import main
from shufflebounds.mechanisms import FiniteRandomizer, GaussianMechanism, KaryResponse, LaplaceMechanism, RandomizedResponse
from shufflebounds.shuffle import (
    BinomialNoise,
    ClearReports,
    Clones,
    FlippedReports,
    RealSum,
    Shuffled,
    ShuffledBits,
    ShuffledHistogram,
    StrongerClones,
    ZeroSum,
)

clones = StrongerClones(10**6, 4.0)

# ruff: noqa: E501
# For each mistake, fragments of the message: argument, value, range and advice.
MISTAKES = [
    (lambda: StrongerClones(0, 4.0), "users", "=0", "1..2**53", "such as 10**6"),
    (lambda: StrongerClones(-5, 4.0), "users", "=-5", "1..2**53", "such as 10**6"),
    (lambda: StrongerClones(2.5, 4.0), "users", "=2.5", "1..2**53", "order of the arguments"),
    (lambda: StrongerClones(1e6, 4.0), "users", "=1000000.0", "1..2**53", "pass 1000000"),
    (lambda: StrongerClones("1e6", 4.0), "users", "='1e6'", "1..2**53", "such as 10**6"),
    (lambda: StrongerClones(None, 4.0), "users", "=None", "1..2**53", "such as 10**6"),
    (lambda: StrongerClones([10, 20], 4.0), "users", "=[10, 20]", "1..2**53", "pass one number"),
    (lambda: StrongerClones(4.0, 10**6), "users", "=4.0", "1..2**53", "pass 4"),
    (lambda: StrongerClones(2**60, 4.0), "users", "=1152921504606846976", "1..2**53", "such as 10**6"),
    (lambda: StrongerClones(10, 0.0), "local_eps", "=0", "(0, 700]", "such as 2.0"),
    (lambda: StrongerClones(10, -1.0), "local_eps", "=-1", "(0, 700]", "such as 2.0"),
    (lambda: StrongerClones(10, 1000.0), "local_eps", "=1000", "(0, 700]", "such as 2.0"),
    (lambda: StrongerClones(10, math.nan), "local_eps", "=nan", "(0, 700]", "such as 2.0"),
    (lambda: StrongerClones(10, "4"), "local_eps", "='4'", "(0, 700]", "got a str; pass a local budget"),
    (lambda: StrongerClones(10, None), "local_eps", "=None", "(0, 700]", "such as 2.0"),
    (lambda: clones.delta(-1.0), "eps", "=-1", ">= 0", "such as 1.0"),
    (lambda: clones.delta(math.inf), "eps", "=inf", ">= 0", "such as 1.0"),
    (lambda: clones.delta(None), "eps", "=None", ">= 0", "such as 1.0"),
    (lambda: clones.delta("1"), "eps", "='1'", ">= 0", "such as 1.0"),
    (lambda: clones.delta([1.0, -1.0]), "eps", "holds -1", ">= 0", "such as 1.0"),
    (lambda: clones.epsilon(2.0), "delta", "=2", "[0, 1]", "such as 1e-9"),
    (lambda: clones.epsilon(-1e-9), "delta", "=-1e-09", "[0, 1]", "such as 1e-9"),
    (lambda: clones.epsilon(None), "delta", "=None", "[0, 1]", "such as 1e-9"),
    (lambda: clones.epsilon("1e-9"), "delta", "='1e-9'", "[0, 1]", "got a str; pass the probability"),
    (lambda: clones.delta(1.0, bound="above"), "bound", "='above'", "'lower', 'upper'", "pass one of these words"),
    (lambda: clones.delta(1.0, bound="Upper"), "bound", "='Upper'", "'lower', 'upper'", "did you mean 'upper'?"),
    (lambda: clones.delta(1.0, bound="up"), "bound", "='up'", "'lower', 'upper'", "did you mean 'upper'?"),
    (lambda: clones.rdp(0.5), "order", "=0.5", ">= 1", "such as 2.0"),
    (lambda: clones.self_compose(0), "times", "=0", "1..", "such as 52"),
    (lambda: clones.self_compose(2.5), "times", "=2.5", "1..", "order of the arguments"),
    (lambda: StrongerClones.calibrate(10**6, 1.0, 1e-6), "positional", "1000000, 1.0, 1e-06", "StrongerClones.calibrate(*, eps, delta",
     "given by name"),
    (lambda: Clones.calibrate(1.0, 1e-6, users=10), "positional", "1.0, 1e-06, users=10", "Clones.calibrate(*, eps, delta", "by name"),
    (lambda: ClearReports.calibrate(200, 1e-9, 1.0), "positional", "200, 1e-09, 1.0", "(*, bins, eps, delta, releases=1, devices=1)", "given by name"),
    (lambda: FlippedReports.calibrate(users=100, bins=10, eps=1.0, delta=1e-6), "'view'", "users=100, bins=10, eps=1.0", "view is one of 'sums', 'records'",
     "call it as FlippedReports.calibrate("),
    (lambda: ShuffledBits.calibrate(users=100, eps=1.0), "'delta'", "users=100, eps=1.0", "(users, *, eps, delta, fakes=0, releases=1", "call it as"),
    (lambda: ShuffledBits.calibrate(users=100, epsilon=1.0, delta=1e-6), "'eps'", "epsilon=1.0", "(users, *, eps, delta", "call it as"),
    (lambda: clones.epsilon(), "'delta'", "StrongerClones.epsilon()", "(delta, *, bound='upper')", "call it as"),
    (lambda: clones.epsilon(1e-6, "lower"), "positional", "'lower'", "(delta, *, bound='upper')", "given by name"),
    (lambda: KaryResponse(10, 1.0).shuffled(), "'users'", "KaryResponse.shuffled()", "(users", "call it as"),
    (lambda: StrongerClones.calibrate(eps=1.0, delta=1e-6), "users", "=None", "exactly one of the two", "users for the largest"),
    (lambda: StrongerClones.calibrate(eps=1.0, delta=1.0, users=10), "delta", "=1", "(0, 1)", "such as 1e-9"),
    (lambda: StrongerClones.calibrate(eps=0.0, delta=1e-6, users=10), "eps", "=0", "> 0", "such as 1.0"),
    (lambda: Shuffled(4.0, 10**6), "randomizer", "=4.0", "local randomizer of shufflebounds.mechanisms", "KaryResponse(10, 2.0)"),
    (lambda: Shuffled.calibrate(4.0, eps=1.0, delta=1e-6), "randomizer", "=4.0", "local randomizer", "KaryResponse(10, 2.0)"),
    (lambda: Shuffled.calibrate(KaryResponse(4, 1.0), eps=1.0, delta=1e-6, users=10), "randomizer", "KaryResponse(", "a function",
     "lambda eps0"),
    (lambda: Shuffled(KaryResponse(4, 1.0), 10, 2.0), "participation", "=2", "1]", "such as 1.0"),
    (lambda: KaryResponse(2.0, 3), "bins", "=2.0", "2..2**53", "pass 2"),
    (lambda: KaryResponse(1, 3.0), "bins", "=1", "2..2**53", "such as 100"),
    (lambda: ShuffledBits(100, 0.7), "flip", "=0.7", "[0, 0.5]", "calibrate(...)"),
    (lambda: BinomialNoise(100, 1.5), "prob", "=1.5", "(0, 1)", "such as 0.5"),
    (lambda: BinomialNoise(-1, 0.5), "trials", "=-1", "0..2**53", "calibrate(...)"),
    (lambda: ZeroSum(100, 0.7), "gamma", "=0.7", "0.5", "calibrate(...)"),
    (lambda: RealSum(100, -1.0, 4), "lam", "=-1", "[0, 100]", "calibrate(...)"),
    (lambda: ShuffledHistogram.calibrate(users=100, bins=1, eps=1.0, delta=1e-6), "bins", "=1", "2..2**53", "such as 100"),
    (lambda: ClearReports(-1, 10), "fakes", "=-1", "0..2**53", "calibrate(...)"),
    (lambda: ClearReports(100, 200).estimate([30, 40]), "messages", "shape (2,)", "more than fakes=100", "counts go to estimate(counts=...)"),
    (lambda: KaryResponse(4, 1.0).estimate([9]), "messages", "holds 9", "0..3", "pass one bin an entry"),
    (lambda: clones.error_quantile(0.05), "error_quantile", "StrongerClones", "attribute", ""),
    (lambda: GaussianMechanism(0.0), "sigma", "=0", "> 0", "from_dp(...)"),
    (lambda: GaussianMechanism.from_dp(1.0, 1e-5), "positional", "1.0, 1e-05", "(*, eps, delta, sensitivity=1.0)", "given by name"),
    (lambda: GaussianMechanism.from_dp(eps=1.0, delta=0.0), "delta", "=0", "(0, 1)", "such as 1e-9"),
    (lambda: GaussianMechanism(1.0, -1.0), "sensitivity", "=-1", "> 0", "such as 1.0"),
    (lambda: LaplaceMechanism("1"), "scale", "='1'", "> 0", "got a str; pass a noise scale"),
    (lambda: RandomizedResponse(-1.0), "eps", "=-1", "", "such as 1.0"),
    (lambda: GaussianMechanism(1.0).subsampled(1.5), "rate", "=1.5", "1]", "such as 0.01"),
    (lambda: sampling.RandomAllocation(GaussianMechanism(1.0), 0), "steps", "=0", "1..", "such as 1000"),
    (lambda: DominatingPair.from_pmfs([0.75, 0.25], [0.25, 0.75]), "log_p", "holds 0.75", "<= 0", "pass np.log(p)"),
    (lambda: DominatingPair.from_pmfs(np.log([0.5, 0.4]), np.log([0.5, 0.5])), "log_p", "sums to 0.9", "sum to 1", "pass np.log(p"),
    (lambda: composition.Ledger(1.0, 2.0), "delta", "=2", "(0, 1)", "such as 1e-9"),
    (lambda: published.stronger_clone_closed_form, "stronger_clone_closed_form", "", "", "did you mean stronger_clones_closed_form"),
    (lambda: shuffle.Histogram, "Histogram", "", "", "did you mean ShuffledHistogram?"),
    (lambda: mechanisms.Gaussian, "Gaussian", "", "", "GaussianMechanism"),
    (lambda: shuffle.compare_at(users=10, bins=1, eps=1.0, delta=1e-6), "bins", "=1", "2..65536", "such as 100"),
    (lambda: shuffle.StrongerClones(1e17, 1.0), "users", "=1e+17", "1..2**53", "it is too large"),
    (lambda: selection.svt_scales(-1.0), "eps", "=-1", "", "such as 1.0"),
    (lambda: StrongerClones(n=10, local_eps=1.0), "'users'", "StrongerClones(n=10, local_eps=1.0)", "(users, local_eps, *, colluding=0, missing=0)",
     "did you mean users= for n=?"),
    (lambda: StrongerClones(10, eps0=1.0), "'local_eps'", "StrongerClones(10, eps0=1.0)", "call it as", "local_eps= for eps0=?"),
    (lambda: GaussianMechanism(sigma2=4.0), "'sigma'", "GaussianMechanism(sigma2=4.0)", "(sigma, sensitivity=1.0)", "sigma= for sigma2"),
    (lambda: RandomizedResponse(1.0, bins=4), "'bins'", "RandomizedResponse(1.0, bins=4)", "(eps, upper=1.0)", "call it as"),
    (lambda: shufflebounds.StrongerClones, "StrongerClones", "shufflebounds", "", "it is in shufflebounds.shuffle"),
    (lambda: KaryResponse(4, 1.0).error_quantile(0.05), "users", "=None", "number of users", "error_quantile(0.05, users=10**5)"),
    (lambda: StrongerClones(4.0, 10**6), "users", "=4.0", "1..2**53", "order of the arguments"),
    (lambda: clones.compose([clones, clones]), "[StrongerClones(", "PrivacyProfile", "", "pass several profiles as arguments, compose(p, q)"),
    (lambda: clones.compose(StrongerClones), "class StrongerClones", "PrivacyProfile", "", "pass an instance, StrongerClones(users"),
    (lambda: Shuffled(KaryResponse, 10**6), "randomizer", "class KaryResponse", "", "pass an instance, KaryResponse(bins, local_eps)"),
    (lambda: shuffle.shuffled_epsilons(KaryResponse, 10, 0.1), "randomizer", "class KaryResponse", "", "pass an instance, KaryResponse("),
    (lambda: sampling.Subsampled(GaussianMechanism, 0.1), "mechanism", "class GaussianMechanism", "", "pass an instance, GaussianMecha"),
    (lambda: Shuffled.calibrate(KaryResponse, eps=1.0, delta=1e-6), "randomizer", "KaryResponse", "", "such as KaryResponse(10, 2.0)"),
    (lambda: ShuffledHistogram.calibrate(500, 2 * 10**6, eps=1.0, delta=1e-8), "positional", "500, 2000000", "(*, users, bins, eps,",
     "such as users=500"),
    (lambda: RealSum.calibrate(8, 10**4, eps=1.0, delta=1e-6), "positional", "8, 10000", "(*, users, bits", "such as users=8"),
    (lambda: FlippedReports.calibrate(500, 20000, eps=1.0, delta=1e-6, view="sums"), "positional", "500, 20000", "(*, users, bins",
     "such as users=500"),
    (lambda: shuffle.compare_at(10**4, 10, eps=1.0, delta=1e-6), "positional", "10000, 10", "(*, users, bins, eps, delta, releases=1, truth=None, devices=1", "by name"),
    (lambda: composition.Ledger(eps=1.0), "'delta'", "Ledger(eps=1.0)", "(eps, delta, *", "call it as"),
    (lambda: selection.SparseVector(1.0), "'scales'", "SparseVector(1.0)", "(threshold, scales, *", "call it as"),
    (lambda: tails.binom(3), "'p'", "binom(3)", "(n, p)", "call it as"),
    (lambda: FiniteRandomizer([[0.333, 0.333, 0.333], [0.25, 0.25, 0.5]]), "matrix", "0.999", "sum to 1 within 1e-12",
     "matrix / matrix.sum(axis=1, keepdims=True)"),
    (lambda: FiniteRandomizer([[3, 1], [1, 3]]), "matrix", "sum 4 in row 0", "sum to 1", "if these are counts or weights, pass matrix / "),
    (lambda: FiniteRandomizer([[0.5, 0.25], [0.5, 0.75]]), "matrix", "0.75 in row 0", "sum to 1", "are rows and columns exchanged?"),
    (lambda: KaryResponse(4, 1.0).randomize([0], rng="x"), "rng", "='x'", "a seed", "pass np.random.default_rng(1)"),
]


@pytest.mark.parametrize(("mistake", "fragments"), [(row[0], row[1:]) for row in MISTAKES])
def test_a_message_names_argument_value_range_and_what_to_do(mistake, fragments):
    with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
        mistake()
    text = str(caught.value)
    assert [fragment for fragment in fragments if fragment not in text] == [], text
    assert " _" not in f" {text}", "a private class is named"


def test_the_public_name_of_an_infeasible_target():
    assert shufflebounds.InfeasibleError.__module__ == "shufflebounds"


def test_an_error_from_inside_a_method_is_left_as_it_is():
    with pytest.raises(TypeError) as caught:
        clones.compose(4.0)
    assert "call it as" not in str(caught.value)


COMMANDS = [
    ("epsilon stronger-clones --users 1e6 --eps0 4 --delta 1e-6", "unrecognized argument --eps0; did you mean --local-eps?"),
    ("epsilon stronger-clones --users 1e6 --local_eps 4 --delta 1e-6", "unrecognized argument --local_eps; did you mean --local-eps?"),
    ("epsilon stronger-clones --user-count 1e6 --local-eps 4 --delta 1e-6", "unrecognized argument --user-count; did you mean --users?"),
    ("epsilon stronger-clones --users=1e6 --local-eps=4 --detla=1e-6", "unrecognized argument --detla; did you mean --delta?"),
    ("epsilon stronger-clones --users x --local-eps 4 --delta 1e-6", "argument --users: 'x' is not a number"),
    ("epsilon stronger-clones --users 1,000,000 --local-eps 4 --delta 1e-6", "'1,000,000' is not a number; did you mean 1000000?"),
    ("epsilon stronger-clones --users 1M --local-eps 4 --delta 1e-6", "'1M' is not a number; write a million as 1e6"),
    ("epsilon stronger-clones --users 0 --local-eps 4 --delta 1e-6", "argument --users: users=0 must be an integer in 1..2**53; pass"),
    ("epsilon stronger-clones --users 10 --local-eps 4 --delta 2", "argument --delta: delta=2 must be in [0, 1]; pass"),
    ("epsilon stronger-clones --users 10", "the following arguments are required: --local-eps, --delta"),
    ("compare --users 10 --bins 4 --eps 1 --delta 1e-6 --times 52", "unrecognized argument --times; did you mean --releases?"),
    ("calibrate clear-reports --bins 10 --eps 1 --delta 1e-6 --times 52", "unrecognized argument --times; did you mean --releases?"),
    ("delta stronger-clones --users 10 --local-eps 1 --eps 1 --delta 1e-8", "unrecognized argument --delta; the options are --"),
    ("epsilon --delta 1e-6 --compose nofile.csv", "nofile.csv"),
    ("epsilon --delta 1e-6", "name a mechanism before --delta"),
    ("nonsense", "invalid choice: 'nonsense': choose from"),
    ("epsilon strong-clones", "invalid choice: 'strong-clones': did you mean stronger-clones"),
    ("help", "invalid choice: 'help': did you mean --help?"),
    ("calibrate kary-response --bins 10 --eps 1 --delta 1e-6", "the following arguments are required: --users"),
    ("calibrate rappor --f 0.5 --eps 1 --delta 1e-6", "cannot be calibrated: 'shufflebounds users rappor' finds"),
    ("calibrate stronger-clones --eps 1 --delta 1e-6", "users=None and local_eps=None: give exactly one of the two"),
    ("compare --users 10 --bins 1 --eps 1 --delta 1e-6", "argument --bins: bins=1 must be an integer in 2..65536; pass"),
    ("personalized nofile.csv --delta 1e-6", "'nofile.csv' cannot be read: No such file or directory; pass a file that exists"),
]


@pytest.mark.parametrize(("words", "text"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_the_command_names_the_option_and_what_was_meant(capsys, words, text):
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert text in capsys.readouterr().err
