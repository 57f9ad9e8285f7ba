"""What README.md, docs/findings.md and the pages behind it say, each figure written from its row in studies/.

A claim is a piece of a document with the words that say what its figures are of: a figure that changes, or
moves to another claim, is no longer found.
"""

from doc_tables import STUDIES, number

from pohp_neurd.results import table


def readme():
    """Of README.md, "What we found"."""
    own = _explorations("own_settings/summary.csv", game="leduc", value="nash_conv_average")
    own_spg = _one("own_settings/summary.csv", game="leduc", value="nash_conv_average", learner="spg")
    phantom = _explorations("own_settings/summary.csv", game="phantom", value="nash_conv")
    phantom_spg = _one("own_settings/summary.csv", game="phantom", value="nash_conv", learner="spg")
    dropped = _explorations("paper/catch_dropped/against_1.csv")
    jump = _jumps("self_play", "none", 0.03)
    last = _jumps("bandit", "mean", 0.3, schedule="decreasing", merit="last_cycle")
    return [
        f"In Leduc poker NashConv is {own[0.1]['mean']:.3f} at η = 0.1, {own_spg['mean']:.3f} by SPG and "
        f"{own[0]['mean']:.3f} by NeuRD (η = 0); in phantom tic-tac-toe {phantom[0.1]['mean']:.3f}, "
        f"{phantom_spg['mean']:.3f} and {phantom[0]['mean']:.3f}",
        f"bias jumps, η = 0.03 halves the NashConv of NeuRD, to {jump['mean']:.2f}.",
        f"the regret of a bandit that jumps rises to {last['mean']:.2f} in the last cycle.",
        f"best at η = 1, as the paper says: accumulated reward {number(dropped[1]['mean'])}.",
    ]


def findings():
    """Of docs/findings.md, every interval."""
    catch, pole = _rates("catch"), _rates("cart_pole", "against_rate")
    dropped = _explorations("paper/catch_dropped/against_1.csv")
    written = _explorations("paper/catch/against_1_0.001797.csv")
    catch_spg = _explorations("paper/catch/against_spg_0.00008.csv")
    pole_spg = {
        rate: _explorations(f"paper/cart_pole/against_spg_{rate}.csv") for rate in ("0.00002", "0.00005")
    }
    tenth = _explorations("paper/cart_pole/against_0.1_0.00005.csv")
    leduc = _explorations("self_play/exploration_nash_conv_average.csv", game="leduc_poker")
    spg = _one("self_play/exploration_nash_conv_average.csv", game="leduc_poker", learner="spg")
    own = _explorations("own_settings/summary.csv", game="leduc", value="nash_conv_average")
    own_spg = _one("own_settings/summary.csv", game="leduc", value="nash_conv_average", learner="spg")
    phantom = _explorations("own_settings/summary.csv", game="phantom", value="nash_conv")
    phantom_spg = _one("own_settings/summary.csv", game="phantom", value="nash_conv", learner="spg")
    rates, pole_rates = (_against_spg("own_rates", world) for world in ("catch", "cart_pole"))
    last = _jumps("bandit", "mean", 0.3, schedule="decreasing", merit="last_cycle")
    met = table.select(table.read(STUDIES / "live/only_sampling_matches.csv"), {"game": "dark_hex"})
    hex_ = {
        (row["exploration"], row["opponent"]): row
        for row in table.summarise(
            table.select(met, {"use": "current"}), by=["exploration", "opponent"], value="mean"
        )
    }
    swaps = {other: _explorations(f"swapping_catch/against_{other}.csv") for other in ("0", "spg")}
    best, at = _readings()
    rolled = _against_spg("readings", "catch")
    return [
        f"SPG's best rate is {best('rollouts_cut')} (5 seeds), and 0.0018 has {at('rollouts_cut', 0.0018)}.",
        f"SPG has {_mean(rolled['paper', ''])}, NeuRD-CIX {_mean(rolled['paper', 0])} at η = 0, "
        f"{_mean(rolled['paper', 0.1])} at 0.1 and {_mean(rolled['paper', 1])} at 1:",
        f"0 is far less reliable, and 1 is nearly as good as SPG ({_difference(rolled['paper', 1])}).",
        f"in cart pole it is {best('rollouts_cart_pole')}, and the paper's 0.00005 has "
        f"{at('rollouts_cart_pole', 5e-5)}.",
        f"there it is 0.00008 | {_mean(catch[8e-5])} there, {_mean(catch[0.0018])} at 0.0018",
        f"0.00002 is ahead of 0.00005 by {_difference(pole[2e-5])}",
        f"catch, dropped: {_mean(dropped[1])} at 1, the best of six explorations; 0.1 and 0.3 cannot be "
        "told from it",
        f"dropped: 0 minus 1 {_difference(dropped[0])}; as written {_difference(written[0])}",
        f"as written, at 0.00008: minus SPG {_difference(catch_spg[1])}",
        f"at 0.00005 0.3 minus 0.1 {_difference(tenth[0.3])}",
        f"minus SPG, dropped: 1 {_difference(rates['dropped', 1])}, "
        f"0.1 {_difference(rates['dropped', 0.1])}, "
        f"0 {_difference(rates['dropped', 0])}; as written: 1 {_difference(rates['paper', 1])}",
        f"minus SPG, as written: 1 {_difference(pole_rates['paper', 1])}, 0.1 "
        f"{_difference(pole_rates['paper', 0.1])}, 0 {_difference(pole_rates['paper', 0])}; dropped: 1 "
        f"{_difference(pole_rates['dropped', 1])}",
        f"NeuRD-CIX(1) minus SPG {_difference(pole_spg['0.00005'][1])}; at the best rate "
        f"{_difference(pole_spg['0.00002'][1])}",
        f"after 10M episodes: {_mean(leduc[0.01], 3)} at η = 0.01, {_mean(leduc[0], 3)} at 0, "
        f"{_mean(spg, 3)} by SPG",
        f"20 fresh seeds: {_mean(own[0.1], 3)} at 0.1, {_mean(own_spg, 3)} by SPG, {_mean(own[0], 3)} at 0; "
        f"phantom tic-tac-toe, current: {_mean(phantom[0.1], 3)}, {_mean(phantom_spg, 3)}, "
        f"{_mean(phantom[0], 3)}",
        f"mean return of 0 against 0.1 {_mean(hex_[0, 0.1], 2)}, of 0.1 against 1 {_mean(hex_[0.1, 1], 2)}",
        f"{_mean(_jumps('self_play', 'none', 0), 2)} at 0, "
        f"{_mean(_jumps('self_play', 'none', 0.03), 2)} at 0.03",
        f"last cycle: {_mean(last, 2)}, where a constant 0.3 has {_jumps('bandit', 'mean', 0.3)['mean']:.2f}",
        f"1 minus 0 is {_difference(swaps['0'][1])}, 1 minus SPG {_difference(swaps['spg'][1])}",
    ]


def paper():
    """Of studies/paper/README.md, every interval that does not stand in its table of results."""
    return [*_learning_rates(), *_explorations_in_the_paper()]


def self_play():
    """Of studies/self_play/exploration.md."""
    current, average = _own_settings("nash_conv"), _own_settings("nash_conv_average")
    return [
        f"SPG has {_mean(current[''], 3)} (current) and {_mean(average[''], 3)} (average), NeuRD-CIX(1) "
        f"{_mean(current[1], 3)} and {_mean(average[1], 3)};",
        f"NeuRD-CIX(0) has {_mean(current[0], 3)} and {_mean(average[0], 3)} (5 fresh seeds each)",
    ]


def _learning_rates():
    catch, pole = _rates("catch"), _rates("cart_pole")
    catch_20, pole_20 = _rates("catch", "against_rate"), _rates("cart_pole", "against_rate")
    return [
        f"of 28 rates, 20 seeds each, 0.00008 is best: {_mean(catch[8e-5])}; 0.00005 and 0.00004 cannot be "
        f"told from it ({_difference(catch_20[5e-5])}, {_difference(catch_20[4e-5])}).",
        f"At 0.0018 it is {_mean(catch[0.0018])}",
        f"hump at 0.00251 ({_mean(catch[0.00251])})",
        f"of 28 rates, 20 seeds each, 0.00002 is best ({_mean(pole[2e-5])}), then 0.00001 "
        f"({_mean(pole[1e-5])}), "
        f"0.00004 ({_mean(pole[4e-5])}) and 0.00005 ({_mean(pole[5e-5])}).",
        f"0.00002 is ahead of 0.00005 by {_difference(pole_20[2e-5])};",
    ]


def _explorations_in_the_paper():
    dropped = _explorations("paper/catch_dropped/against_1.csv")
    catch = {rate: _explorations(f"paper/catch/against_1_{rate}.csv") for rate in ("0.00008", "0.001797")}
    pole = {rate: _explorations(f"paper/cart_pole/against_1_{rate}.csv") for rate in ("0.00002", "0.00005")}
    catch_spg = {rate: _explorations(f"paper/catch/against_spg_{rate}.csv") for rate in catch}
    pole_spg = {rate: _explorations(f"paper/cart_pole/against_spg_{rate}.csv") for rate in pole}
    pole_tenth = _explorations("paper/cart_pole/against_0.1_0.00005.csv")
    spg = _one("paper/catch/explorations_0.00004.csv", learner="SPG")
    return [
        "catch at 0.00004, dropped: "
        + ", ".join(f"{each:g} {_mean(dropped[each])}" for each in (0, 0.01, 0.03, 0.1, 0.3, 1))
        + ".",
        f"cart pole: 1 is below 0 at both rates (0 minus 1: {_difference(pole['0.00005'][0])} at 0.00005, "
        f"{_difference(pole['0.00002'][0])} at 0.00002).",
        f"Catch: at 0.00008 0 is ahead of it (0 minus 1: {_difference(catch['0.00008'][0])});",
        f"dropped, at 0.00004: 0 minus 1 {_difference(dropped[0])},",
        f"As written: 0 minus 1 {_difference(catch['0.001797'][0])} at 0.001797;",
        f"NeuRD-CIX(1) minus SPG: at SPG's best rate, 0.00008, {_difference(catch_spg['0.00008'][1])}; "
        "at 0.001797, "
        f"where SPG collapses, {_difference(catch_spg['0.001797'][1])}.",
        f"With the common mode dropped, at 0.00004: {_mean(dropped[1])} against SPG's {_mean(spg)}",
        f"0.3 minus 0.1 {_difference(pole_tenth[0.3])}",
        f"at the paper's, 0.00005, yes: NeuRD-CIX(1) minus SPG {_difference(pole_spg['0.00005'][1])}, "
        "NeuRD-CIX(0) "
        f"{_difference(pole_spg['0.00005'][0])}.",
        f"At the best, 0.00002, little: NeuRD-CIX(1) minus SPG {_difference(pole_spg['0.00002'][1])}, "
        "NeuRD-CIX(0) "
        f"{_difference(pole_spg['0.00002'][0])}",
    ]


def readings():
    """Of studies/readings/README.md, its prose."""
    best, at = _readings()
    return [
        f"Best is {best('rollouts_cut')}, 0.0018 has {at('rollouts_cut', 0.0018)}, and 0.00004 "
        f"{at('rollouts_cut', 4e-5)}.",
        f"`rollouts` is best at {best('rollouts')}, `landing_cuts` at {best('landing_cuts')}; at 0.0018 they "
        f"have {at('rollouts', 0.0018)} and {at('landing_cuts', 0.0018)}.",
        f"the best rate is {best('rollouts_cart_pole')}, and the paper's 0.00005 has "
        f"{at('rollouts_cart_pole', 5e-5)}.",
        f"(`zero_heads`) have their best rates near the paper's: {best('zero_heads')}, and "
        f"{at('zero_heads', 0.0018)} at 0.0018.",
        f"is much the same: {best('rollouts_discounted')}, and {at('rollouts_discounted', 0.0018)} at "
        "0.0018.",
        f"({best('landing_cuts')}, {best('discounted')}).",
        f"the smallest of the rates is best, {best('all_states')}; a smaller one may be better. At 0.0018 it "
        f"has {at('all_states', 0.0018)}.",
        *_rollouts(),
    ]


def _rollouts():
    """Of studies/readings/README.md, the paper's claims where there is one update for every 32 steps."""
    rate = {row["learning_rate"]: row for row in table.read(STUDIES / "readings/against_rate.csv")}
    spg, pole = (_against_spg("readings", world) for world in ("catch", "cart_pole"))
    written, dropped = (_explorations(f"readings/against_1_{mode}.csv") for mode in ("paper", "dropped"))
    return [
        "SPG has " + ", ".join(f"{_mean(rate[each])} at {each:g}" for each in sorted(rate)) + ".",
        f"0 minus 1 is {_difference(written[0])}, with the common mode dropped {_difference(dropped[0])}.",
        f"0.1 and 0.3 cannot be told from 1 ({_difference(written[0.1])}, {_difference(written[0.3])}).",
        f"NeuRD-CIX(1) minus SPG is {_difference(spg['paper', 1])}, with the common mode dropped "
        f"{_difference(spg['dropped', 1])}.",
        f"NeuRD-CIX(1) minus SPG is {_difference(pole['paper', 1])}, NeuRD-CIX(0) "
        f"{_difference(pole['paper', 0])}.",
    ]


def swapping_catch():
    """Of studies/swapping_catch/README.md."""
    path = "swapping_catch/against"
    zero = _explorations(f"{path}_0.csv")
    spg = _explorations(f"{path}_spg.csv")
    tenth = _explorations(f"{path}_0.1.csv", decreasing=True)
    one = _explorations(f"{path}_1.csv", decreasing=True)
    return [
        f"1 minus 0 is {_difference(zero[1])}, 1 minus SPG {_difference(spg[1])}.",
        f"from 0.1 it is worse than the constant ({_difference(tenth[0.1])}), from 1 20 seeds "
        f"show no difference ({_difference(one[1])}).",
        f"NeuRD without exploration cannot be told apart from SPG** ({_difference(spg[0])}).",
    ]


def _one(file, **conditions):
    """The one row of a recorded summary that fits."""
    (row,) = table.select(table.read(STUDIES / file), conditions)
    return row


def _readings():
    """Two functions: a reading's best learning rate with its mean, and its mean at a rate."""
    rows = table.read(STUDIES / "readings" / "rows.csv")
    means = {
        key: sum(row["total_reward"] for row in found) / len(found)
        for key, found in table.groups(rows, ["reading", "learning_rate"]).items()
    }

    def best(name):
        rate = max((key for key in means if key[0] == name), key=means.__getitem__)[1]
        return f"{rate:f}".rstrip("0") + f" with {number(means[name, rate])}"

    return best, lambda name, rate: number(means[name, rate])


def _against_spg(study, environment):
    """Each learner's row, by common mode and exploration."""
    rows = table.read(STUDIES / study / f"against_spg_{environment}.csv")
    return {(row["common_mode"], row["exploration"]): row for row in rows}


def _own_settings(value):
    """The ends of the interpolation at settings of their own; SPG has no exploration."""
    rows = table.read(STUDIES / "self_play" / f"own_settings_{value}.csv")
    return {row["exploration"]: row for row in rows}


def _rates(environment, file="learning_rates"):
    return {row["learning_rate"]: row for row in table.read(STUDIES / "paper" / environment / f"{file}.csv")}


def _explorations(file, *, decreasing=False, **conditions):
    """NeuRD-CIX's rows of a recorded summary, by exploration."""
    rows = table.select(table.read(STUDIES / file), {"learner": "neurd_cix", **conditions})
    kept = [row for row in rows if bool(row.get("exploration_decay")) == decreasing]
    assert len({row["exploration"] for row in kept}) == len(kept)
    return {row["exploration"]: row for row in kept}


def _jumps(reading, baseline, exploration, *, schedule="constant", merit="tracking"):
    """NeuRD-CIX without a magnet in rock-paper-scissors whose bias jumps."""
    return _one(
        "changing_game/summary.csv",
        **{"world": "jumping", "magnet_strength": 0, "learner": "neurd_cix", "reading": reading},
        **{"baseline": baseline, "exploration": exploration, "schedule": schedule, "merit": merit},
    )


def _mean(row, digits=0):
    return _interval(row, "mean", f",.{digits}f")


def _difference(row):
    return _interval(row, "difference", "+,.0f")


def _interval(row, name, form):
    value, low, high = (format(row[name + end], form).replace("-", "−") for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"
