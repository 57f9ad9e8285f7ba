"""The page in a real browser: no error, no request, and numbers that are the CSV's and the exact ones."""

import json

import browser
import numpy as np
import packing
import pytest

from pohp_neurd import exact, openspiel
from pohp_neurd.experiment import configs, game, game_config, report, single_agent
from pohp_neurd.openspiel import saved
from pohp_neurd.results import report as pages
from pohp_neurd.results import table

pytestmark = [
    pytest.mark.browser,
    pytest.mark.thorough,
    pytest.mark.skipif(browser.found() is None, reason=f"there is no browser: none of {browser.NAMES}"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with browser.opened(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    small = {"game": "kuhn_poker(players=3)", "episodes": 4096, "batch_size": 256}
    game.run(game_config.Config(**small), folder / "table")
    game.run(game_config.Config(**small, policy="neural", hidden_layers=(8,)), folder / "network")
    for environment in ("catch", "cart_pole"):
        config = configs.SingleAgent(environment=environment, num_steps=300, interval=100, seeds=3, width=8)
        single_agent.run(config, folder / environment)
    return folder


@pytest.fixture
def shown(page, runs, tmp_path):
    """Opens the page of a run; at the end nothing may have gone wrong, and nobody have been asked."""

    def show(name, width=1200, scheme="light", **more):
        file = tmp_path / "report.html"
        data = report.gather(configs.Report(checkpoint=str(runs / name), **more))
        file.write_text(pages.page(data), encoding="utf-8")
        page.errors.clear()
        page.requests.clear()
        page.resize(width, 900, scheme)
        page.open(file)
        return page, data

    yield show
    assert page.errors == []
    assert [address.split(":")[0] for address in page.requests] == ["file"]


def values(page, selector):
    """The numbers within an element, with all their digits."""
    return page.ask(
        f"[...document.querySelectorAll({json.dumps(selector + ' data')})].map((each) => Number(each.value))"
    )


def text(page, selector):
    return page.ask(f"document.querySelector({json.dumps(selector)}).textContent")


def press(page, selector, *keys):
    page.ask(f"document.querySelector({json.dumps(selector)}).focus()")
    for key in keys:
        page.press(key)


def choose(page, selector, value):
    page.ask(
        f"(() => {{ const found = document.querySelector({json.dumps(selector)});"
        f"found.value = {json.dumps(value)};"
        "found.dispatchEvent(new Event('input')); found.dispatchEvent(new Event('change')); })()"
    )


def test_curves_and_final_figures_are_those_of_the_csv(shown, runs):
    page, _ = shown("table")
    rows = table.read(runs / "table" / "metrics.csv")
    for name, value in rows[-1].items():
        assert values(page, f'#final [data-column="{name}"]') == [value]
    press(page, '[data-chart="NashConv"] svg[tabindex]', "Home")
    first = [rows[0][name] for name in ("episodes", "nash_conv", "nash_conv_average")]
    assert values(page, '[data-chart="NashConv"] .readout') == first
    page.ask("document.querySelector('[data-log=y]').click()")
    press(page, '[data-chart="NashConv"] svg[tabindex]', "ArrowRight")
    second = [rows[1][name] for name in ("episodes", "nash_conv", "nash_conv_average")]
    assert values(page, '[data-chart="NashConv"] .readout') == second


def test_a_pointer_reads_the_curves(shown, runs):
    page, _ = shown("table")
    chart = """document.querySelector('[data-chart="NashConv"] svg[tabindex]')"""
    page.ask(f"{chart}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    area = page.ask(f"{chart}.getBoundingClientRect().toJSON()")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=area["right"] - 3, y=area["top"] + 50)
    last = table.read(runs / "table" / "metrics.csv")[-1]
    expected = [last[name] for name in ("episodes", "nash_conv", "nash_conv_average")]
    assert values(page, '[data-chart="NashConv"] .readout') == expected


def test_states_have_the_exact_values_and_gains_add_up(shown, runs):
    page, data = shown("table")
    tree = openspiel.compile_game("kuhn_poker(players=3)")
    policy = saved.table(saved.load(runs / "table"), tree, "average")
    found, (gained, _) = exact.quantities(tree, policy), report.gains(tree, policy)
    assert values(page, "#gains")[0] == pytest.approx(exact.nash_conv(tree, policy), abs=1e-9)
    assert values(page, "#nash-conv") == [data["policies"][1]["nash_conv"]]
    assert float(text(page, "#gains")) == pytest.approx(float(text(page, "#nash-conv")), abs=1e-6)
    order = page.ask("[...document.querySelectorAll('.state')].map((each) => Number(each.dataset.state))")
    assert np.all(np.diff(gained[order]) <= 0)
    assert order[0] == np.argmax(gained)
    for state in order:
        card = f'.state[data-state="{state}"]'
        assert values(page, f"{card} header") == [gained[state], found.realization[state]]
        gain, value, *cells = values(page, f'{card} [data-policy="{data["policies"][1]["which"]}"]')
        assert gain == gained[state]
        assert value == pytest.approx(found.value[state], abs=1e-6)
        columns = np.stack([policy[state], found.action_value[state], found.advantage[state]], axis=1)
        np.testing.assert_allclose(np.reshape(cells, (-1, 3)), columns, atol=1e-6)


def test_search_and_filter(shown):
    page, _ = shown("table")
    assert text(page, "#found").startswith("48 of 48 states")
    page.ask("document.activeElement.blur()")
    page.press("/")
    for sign in "card q":
        page.press(sign)
    tree = openspiel.compile_game("kuhn_poker(players=3)")
    queens = [state for state, name in enumerate(tree.information_state_strings) if name.startswith("1")]
    assert text(page, "#found").startswith(f"{len(queens)} of 48 states")
    choose(page, "#player", "1")
    order = page.ask("[...document.querySelectorAll('.state')].map((each) => Number(each.dataset.state))")
    assert sorted(order) == [state for state in queens if tree.state_player[state] == 1]
    choose(page, "#search", "no such words")
    assert text(page, "#found").startswith("0 of 48 states")


def test_walking_with_keys_alone(shown, runs):
    page, _ = shown("table")
    tree = openspiel.compile_game("kuhn_poker(players=3)")
    policy = saved.table(saved.load(runs / "table"), tree, "average")
    found = exact.quantities(tree, policy)
    press(page, "#walking .choose")
    rng, row = np.random.default_rng(0), 0
    while tree.num_children[row]:
        place = int(rng.integers(tree.num_children[row]))
        row = int(tree.first_child[row]) + place
        page.press(str(place + 1))
        if tree.num_children[row]:
            np.testing.assert_allclose(values(page, "#returns"), found.history_value[row], atol=1e-6)
        state = tree.information_state[row]
        if state >= 0:
            beliefs = sorted(found.belief[tree.information_state == state])
            np.testing.assert_allclose(sorted(values(page, "#beliefs")), beliefs, atol=1e-6)
    np.testing.assert_allclose(values(page, "#returns"), tree.along_paths(tree.rewards)[row])
    assert text(page, "#walking h3") == "The game is over"
    press(page, "#again", "Backspace")
    assert text(page, "#walking h3").startswith("Player")
    page.ask("document.querySelector('.state button').click()")
    assert text(page, "#walking h3").startswith("Player 0 to move, seeing")


def test_two_runs_side_by_side(shown, runs):
    page, data = shown("table", against=str(runs / "network"))
    names = [f"{each['run']}, {each['which']}" for each in data["policies"]]
    tables = "[...document.querySelector('.state').querySelectorAll('table.actions')]"
    assert page.ask(f"{tables}.map((each) => each.dataset.policy)") == names
    assert {name.split(",")[0] for name in names} == {"table", "network"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["table", "catch", "cart_pole"])
def test_narrow_pages_need_no_scrolling_sideways(shown, name, scheme):
    page, _ = shown(name, width=400, scheme=scheme)
    assert page.ask("document.documentElement.scrollWidth") <= 400
    heads = "[...document.querySelectorAll('th, caption, button')].map((each) => each.offsetHeight)"
    assert max(page.ask(heads)) < 90  # no column so narrow that it has a letter a line
    back = page.ask("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")
    page.ask("document.querySelector('#theme').click()")  # light
    assert page.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_what_is_left_out_is_said(shown):
    page, data = shown("network", max_histories=10)
    assert text(page, "#left-out") == data["left_out"]
    assert page.ask("[...document.querySelectorAll('section')].map((each) => each.id)") == ["run", "curves"]


def test_the_map_of_catch(shown):
    page, data = shown("catch")
    (found,) = data["maps"]
    press(page, '[data-row="2"] svg', "ArrowRight")  # from the middle: ball in column 4, paddle in column 3
    assert text(page, "#cell").startswith("Ball in row 3, column 4, paddle in column 3: left")
    probability = np.reshape(packing.unpacked(found["probability"]), (3, 9, 5, 5, 3))
    np.testing.assert_allclose(values(page, "#cell"), probability[:, 2, 3, 2].mean(axis=0), atol=1e-6)


def test_the_phases_of_cart_pole(shown):
    page, data = shown("cart_pole")
    (found,) = data["maps"]
    press(page, "#maps figure svg", "ArrowRight", "ArrowUp")
    assert text(page, "#cell").startswith("Angle 0.6°, angular velocity 0.15 rad/s: right")
    probability = np.reshape(packing.unpacked(found["probability"]), (3, 41, 41, 2))
    np.testing.assert_allclose(values(page, "#cell"), [probability[:, 21, 21, 1].mean()], atol=1e-6)


def test_who_holds_what_is_said_in_beliefs(shown):
    page, _ = shown("table")
    press(page, "#walking .choose", "1", "1", "1")  # player 0 has J, player 1 has Q, player 2 has K
    assert text(page, ".path") == "Startplayer 0 has Jplayer 1 has Qplayer 2 has K"
    hidden = "[...document.querySelectorAll('#beliefs td:first-child')].map((each) => each.textContent)"
    expected = {f"player 1 has {a}, player 2 has {b}" for a in "QKA" for b in "QKA" if a != b}
    assert {each.removesuffix(" ← actual") for each in page.ask(hidden)} == expected


def test_printing_leaves_the_controls_out(shown):
    page, _ = shown("table")
    page.call("Emulation.setEmulatedMedia", media="print")
    styles = "[...document.querySelectorAll('.controls, nav')].map((each) => getComputedStyle(each).display)"
    assert set(page.ask(styles)) == {"none"}
    page.call("Emulation.setEmulatedMedia", media="")
