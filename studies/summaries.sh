# Makes the tables of statistics over seeds again, from the rows of all runs. Run it in the project's folder.
set -e
S="python run_scripts/summarise.py"
C=studies/paper/catch P=studies/paper/cart_pole N=studies/swapping_catch G=studies/self_play/exploration
BY=--by=learner,exploration,exploration_decay
for rate in 0.00004 0.00008 0.001797; do
  $S --input=$C/results.csv --where=learning_rate=$rate --against=learner=spg --output=$C/against_spg_$rate.csv
  $S --input=$C/results.csv --where=learning_rate=$rate --against=exploration=1 --output=$C/against_1_$rate.csv
done
$S --input=studies/paper/catch_dropped/results.csv --against=exploration=1 --output=studies/paper/catch_dropped/against_1.csv
for rate in 0.00002 0.00005; do
  $S --input=$P/results.csv --where=learning_rate=$rate --against=learner=spg --output=$P/against_spg_$rate.csv
  $S --input=$P/results.csv --where=learning_rate=$rate --against=exploration=1 --output=$P/against_1_$rate.csv
  $S --input=$P/results.csv --where=learning_rate=$rate --against=exploration=0.1 --output=$P/against_0.1_$rate.csv
done
$S --input=$C/results.csv --where=learner=spg --by=learning_rate --against=learning_rate=0.00008 --output=$C/against_rate.csv
$S --input=$P/results.csv --where=learner=spg --by=learning_rate --against=learning_rate=0.00005 --output=$P/against_rate.csv
for value in total_reward losses_per_step_at_end; do
  $S --input=$N/results.csv $BY --value=$value --output=$N/$value.csv
done
$S --input=$N/results.csv $BY --against=learner=spg --output=$N/against_spg.csv
for exploration in 0 0.1 1; do
  $S --input=$N/results.csv $BY --against=exploration=$exploration,exploration_decay= --output=$N/against_$exploration.csv
done
for value in nash_conv nash_conv_average; do
  $S --input=${G}_results.csv --by=game,learner,exploration,exploration_decay --value=$value --output=${G}_$value.csv
  $S --input=${G}_0_results.csv --by=game,learner,exploration --value=$value --output=${G}_0_$value.csv
  $S --input=studies/self_play/own_settings_results.csv --by=learner,exploration,step_size,magnet_strength --value=$value \
    --output=studies/self_play/own_settings_$value.csv
done
for environment in catch cart_pole; do
  $S --input=studies/own_rates/report_results.csv --where=environment=$environment --by=learner,common_mode,exploration,learning_rate \
    --against=learner=spg --output=studies/own_rates/against_spg_$environment.csv
done
R=studies/readings
$S --input=$R/rollouts_results.csv --where=environment=catch,learning_rate=0.001797 --by=learner,common_mode,exploration \
  --against=learner=spg --output=$R/against_spg_catch.csv
$S --input=$R/rollouts_results.csv --where=environment=cart_pole --by=learner,common_mode,exploration \
  --against=learner=spg --output=$R/against_spg_cart_pole.csv
for mode in paper dropped; do
  $S --input=$R/rollouts_results.csv --where=environment=catch,learner=neurd_cix,common_mode=$mode --against=exploration=1 \
    --output=$R/against_1_$mode.csv
done
$S --input=$R/rollouts_results.csv --where=environment=catch,learner=spg --by=learning_rate --against=learning_rate=0.001797 \
  --output=$R/against_rate.csv
