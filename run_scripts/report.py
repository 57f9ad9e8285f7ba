"""Makes one HTML page of a run: settings, learning curves, the policy state by state, the game to walk.

    python run_scripts/report.py --checkpoint=runs/leduc
    python run_scripts/report.py --checkpoint=runs/leduc --against=runs/other --output=both.html
    python run_scripts/report.py --checkpoint=runs/catch

The page is self-contained: open it in a browser. For runs of train_game.py and train_single_agent.py.
Ends with one line of JSON.
"""

import json
import pathlib

from pohp_neurd.experiment import command_line, configs

command_line.define(configs.Report)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config, gathers and writes."""
    config = command_line.config(configs.Report)
    command_line.opening(
        f"Making the report of {config.checkpoint}: some seconds, or a minute for a large game"
    )
    from pohp_neurd.experiment import report as gathering
    from pohp_neurd.results import records, report

    data = gathering.gather(config)
    records.write_text(config.output, report.page(data))
    judged = {f"{each['run']}, {each['which']}": each["nash_conv"] for each in data.get("policies", ())}
    print(f"Open {config.output} in a browser.")
    size = pathlib.Path(config.output).stat().st_size
    print(json.dumps({"report": config.output, "bytes": size, "nash_conv": judged}))


if __name__ == "__main__":
    command_line.run(main, __doc__)
