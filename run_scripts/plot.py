r"""Draws figures of sweeps and runs from their CSV files alone.

The paper's figure: each run a dot, their mean a line, SPG's mean and range beside them:
    python run_scripts/plot.py --kind=sensitivity --input=runs/sweep/results.csv --panels=environment \
        --reference=learner=spg --title="Sensitivity to exploration" --output=sensitivity.png

Accumulated reward over the learning rate, one environment of several:
    python run_scripts/plot.py --kind=learning_rates --input=runs/sweep/results.csv \
        --where=environment=catch --series=learner,exploration --output=learning_rates.png

Learning curves of whole runs, each file under a name; the second file is narrowed to one exploration:
    python run_scripts/plot.py --kind=learning_curves --input="SPG=runs/catch_spg/metrics.csv" \
        --input="NeuRD-CIX(1)=runs/catch/metrics.csv@exploration=1" --title=Catch --output=catch.png

NashConv in self-play, the median over seeds with a band, current policy left and average policy right:
    python run_scripts/plot.py --kind=nash_conv --input=runs/sweep/curves.csv --where=game=leduc_poker \
        --series=exploration --title="Leduc poker" --output=leduc.png
"""

from pohp_neurd.experiment import command_line, request

command_line.define(request.Config)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and draws it."""
    config = command_line.config(request.Config)
    command_line.opening(f"Drawing {config.output}: some seconds")
    request.draw(config)
    print(config.output)


if __name__ == "__main__":
    command_line.run(main, __doc__)
