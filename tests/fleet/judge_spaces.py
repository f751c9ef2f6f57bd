"""Whether workers with clocks of their own measure what the same number with the lab's clock do, and
know how wrong theirs are.

    judge_spaces.py EXPORT NS,PPM…      by how much each worker's clock was ahead as its run began, and what it gains

Fails where figures are not shown to be the same, or with UNDECIDED=pass in the environment only where they are shown not
to be.
"""

import os
import sys

from judge import MARGINS, experiments, figures, judge

# Largest error of a clock that is known, ns.
ERROR_MAX_NS = 200_000
# A clock is set, and its offset told, after fifty questions 20 ms apart on average: about a second after it was falsified.
SET_AFTER_S = (0.7, 2.0)


def seconds_told(run):
    """For how long at least a run's clocks were watched after they were set: since its first phase began."""
    return (run["counts"]["end_ns"] - min(phase["start_ns"] for phase in run["phases"])) / 1e9


def judge_clock(repeat, clock, false_ns, false_ppm, told_s):
    """Prints a row, and returns whether a worker's clock was what it was made to be, to within the error that is stated."""
    error_ns = clock["error_ns"]
    # The coordinator's clock is ahead by what the worker's is behind.
    offset_ns, drift_ppm = -clock["offset_ns"], -clock["drift_ppm"]
    # ppm times seconds are microseconds.
    low, high = sorted(false_ns + false_ppm * 1e3 * after_s for after_s in SET_AFTER_S)
    off_ns = max(low - offset_ns, offset_ns - high, 0)
    # Each end of the line from which the drift is told may be off by the error.
    drift_error_ppm = 2 * error_ns / told_s / 1e3
    faults = []
    if off_ns > error_ns:
        faults.append("OFFSET IS WRONG")
    if abs(drift_ppm - false_ppm) > drift_error_ppm:
        faults.append("DRIFT IS WRONG")
    if error_ns > ERROR_MAX_NS:
        faults.append("ERROR IS LARGE")
    print(
        f"{repeat:<7} {clock['worker'] + 1:<7} {offset_ns / 1e6:>+8.3f} ms of {false_ns / 1e6:>+6.3f}, off by "
        f"{off_ns / 1e6:.3f} of {error_ns / 1e6:.3f} {drift_ppm:>+7.1f} ppm of {false_ppm:>+5.1f} ± {drift_error_ppm:.1f}  "
        f"{', '.join(faults) or 'as stated'}"
    )
    return not faults


def main():
    clocks = [tuple(float(number) for number in text.split(",")) for text in sys.argv[2:]]
    verdicts = []
    good = {"equivalent", "undecided", "too few"} if os.environ.get("UNDECIDED") == "pass" else {"equivalent"}
    found = {"own": [], "lab's": []}
    print(f"{'repeat':<7} {'worker':<7} what its clock was, and what it was made to be")
    for experiment in experiments(sys.argv[1]):
        for run in experiment["runs"]:
            told = run["document"]["result"].get("clocks", [])
            # Workers with the lab's own clock tell nothing.
            name = "own" if told else "lab's"
            found[name].append(figures(run) or {})
            repeat = len(found[name])
            if told and len(told) != len(clocks):
                print(f"{repeat:<7} {len(told)} clocks are told and not {len(clocks)}")
                verdicts.append(False)
            for clock, false in zip(told, clocks):
                verdicts.append(judge_clock(repeat, clock, *false, seconds_told(run)))
            if run["warnings"]:
                print(f"{repeat:<7} {name}: {', '.join(warning['code'] for warning in run['warnings'])}")
    if len(found["own"]) != len(found["lab's"]):
        print("not every repeat has a run of each")
        verdicts.append(False)
    print(f"\n{'metric':<22} {'clocks':<8} {'ratio to the lab’s clock':<28} {'margin':<8} blocks")
    for metric in MARGINS:
        verdicts.append(judge(metric, "own", list(zip(found["own"], found["lab's"]))) in good)
    print(f"\n{verdicts.count(True)} passed, {verdicts.count(False)} failed")
    sys.exit(0 if all(verdicts) else 1)


main()
