"""When the launcher restarts a process by its answers to health checks."""

from __future__ import annotations

from deploy.local.pulse import BUSY_FACTOR, MOST_STEP_S, STEADY_S, Pulse, State, Verdict

PATIENCE_S = 20.0
IDLE, WORKING = 0.0, 0.5


def pulse_of_a_running_process() -> Pulse:
    pulse = Pulse(PATIENCE_S)
    assert pulse.check(State.WELL, 1, IDLE, room=True) is None
    return pulse


def seconds_until_ended(
    pulse: Pulse, state: State, *, cpu_s: float = IDLE, room: bool = True, most: int = 5000
) -> tuple[int, Verdict] | None:
    """The second in which a verdict falls, with one check per second; None when none falls in `most` seconds."""
    for second in range(1, most + 1):
        verdict = pulse.check(state, 1, cpu_s, room=room)
        if verdict is not None:
            return second, verdict
    return None


def test_a_silent_idle_process_is_killed_after_the_patience() -> None:
    ended = seconds_until_ended(pulse_of_a_running_process(), State.SILENT)

    assert ended == (20, Verdict("has not answered for 20 s", frozen=True))


def test_a_silent_process_that_works_gets_more_time() -> None:
    ended = seconds_until_ended(pulse_of_a_running_process(), State.SILENT, cpu_s=WORKING)

    assert ended is not None
    assert ended[0] == BUSY_FACTOR * PATIENCE_S


def test_one_answer_starts_the_patience_anew() -> None:
    pulse = pulse_of_a_running_process()
    assert seconds_until_ended(pulse, State.SILENT, most=19) is None
    assert pulse.check(State.WAITING, 1, IDLE, room=True) is None

    assert seconds_until_ended(pulse, State.SILENT, most=19) is None


def test_a_process_that_waits_for_another_is_never_restarted() -> None:
    assert seconds_until_ended(pulse_of_a_running_process(), State.WAITING) is None


def test_a_starting_process_that_works_may_take_any_time() -> None:
    assert seconds_until_ended(Pulse(PATIENCE_S), State.SILENT, cpu_s=WORKING) is None


def test_a_process_that_is_stopped_while_it_starts_is_killed() -> None:
    ended = seconds_until_ended(Pulse(PATIENCE_S), State.SILENT)

    assert ended is not None
    assert ended[0] == BUSY_FACTOR * PATIENCE_S
    assert ended[1].frozen


def test_an_ill_process_is_asked_to_end_after_a_longer_time() -> None:
    ended = seconds_until_ended(pulse_of_a_running_process(), State.ILL)

    assert ended is not None
    assert ended[0] == BUSY_FACTOR * PATIENCE_S
    assert not ended[1].frozen


def test_a_server_that_still_reads_its_store_is_left_alone() -> None:
    assert seconds_until_ended(Pulse(PATIENCE_S), State.ILL, cpu_s=WORKING) is None


def test_a_process_that_a_full_disk_silenced_is_killed_soon_after_there_is_room() -> None:
    pulse = pulse_of_a_running_process()
    assert seconds_until_ended(pulse, State.SILENT, room=False, most=6) is None

    assert seconds_until_ended(pulse, State.SILENT) == (5, Verdict("has not answered for 11 s", frozen=True))


def test_a_process_that_answers_after_a_full_disk_has_its_patience_again() -> None:
    pulse = pulse_of_a_running_process()
    assert seconds_until_ended(pulse, State.SILENT, room=False, most=6) is None
    assert pulse.check(State.WELL, 1, IDLE, room=True) is None

    ended = seconds_until_ended(pulse, State.SILENT)
    assert ended is not None
    assert ended[0] == PATIENCE_S


def test_a_write_error_waits_for_room_and_then_for_two_seconds() -> None:
    pulse = pulse_of_a_running_process()
    assert seconds_until_ended(pulse, State.NO_ROOM, room=False) is None

    ended = seconds_until_ended(pulse, State.NO_ROOM, room=True)

    assert ended == (1, Verdict("could not write to the disk, which has room again", frozen=False))
    pulse.begin()
    ended = seconds_until_ended(pulse, State.NO_ROOM, room=True)
    assert ended is not None
    assert ended[0] == 4, "room that is not there for the process must not restart it without end"


def test_a_disk_that_fills_again_and_again_is_recovered_from_as_soon_each_time() -> None:
    pulse = pulse_of_a_running_process()
    seconds = []
    for _ in range(6):
        assert seconds_until_ended(pulse, State.NO_ROOM, room=False, most=20) is None
        ended = seconds_until_ended(pulse, State.NO_ROOM, room=True)
        assert ended is not None
        seconds.append(ended[0])
        pulse.begin()
        assert seconds_until_ended(pulse, State.WELL, most=15) is None

    assert seconds == [1] * 6


def test_a_write_error_that_stays_is_met_at_least_every_half_minute() -> None:
    pulse = pulse_of_a_running_process()
    seconds = []
    for _ in range(6):
        ended = seconds_until_ended(pulse, State.NO_ROOM, room=True)
        assert ended is not None
        seconds.append(ended[0])
        pulse.begin()

    assert seconds == [2, 4, 8, 16, 16, 16]


def test_each_restart_in_vain_doubles_the_patience_up_to_a_limit() -> None:
    pulse = pulse_of_a_running_process()
    seconds = []
    for _ in range(9):
        ended = seconds_until_ended(pulse, State.SILENT)
        assert ended is not None
        seconds.append(ended[0])
        pulse.begin()
        pulse.check(State.WELL, 1, IDLE, room=True)

    assert seconds == [20, 40, 80, 160, 320, 640, 1280, 1280, 1280]


def test_long_health_restores_the_patience() -> None:
    pulse = pulse_of_a_running_process()
    assert seconds_until_ended(pulse, State.SILENT) is not None
    pulse.begin()
    for _ in range(int(STEADY_S)):
        pulse.check(State.WELL, 1, IDLE, room=True)

    ended = seconds_until_ended(pulse, State.SILENT)

    assert ended is not None
    assert ended[0] == 20


def test_time_in_which_the_launcher_was_stopped_does_not_count() -> None:
    pulse = pulse_of_a_running_process()

    assert pulse.check(State.SILENT, 3600, IDLE, room=True) is None
    assert seconds_until_ended(pulse, State.SILENT, most=int(PATIENCE_S - MOST_STEP_S) - 1) is None
