"""Signals as a question, in this process."""

import os
import signal

import pytest

from pohp_neurd.experiment import run


def test_the_first_signal_is_remembered_and_what_was_before_comes_back():
    before = signal.getsignal(signal.SIGTERM)
    with run.watched() as came:
        assert came() is None
        os.kill(os.getpid(), signal.SIGTERM)
        assert came() == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_polite_end_after_a_ctrl_c_leaves_time_to_save():
    """As the workers of a sweep get them: Ctrl-C goes to the whole group, then their parent ends them."""
    with run.watched() as came:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert came() == signal.SIGINT


def test_a_second_ctrl_c_interrupts_at_once():
    with run.watched():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_what_is_ignored_stays_so():
    """As nohup asks for: the run outlives its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with run.watched() as came:
            os.kill(os.getpid(), signal.SIGHUP)
            assert came() is None
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_polite_ends_are_raised_where_that_is_asked_for(number):
    with run.raised(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)
