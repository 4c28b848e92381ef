# Completion time of a message over loss, as multiples of the ideal: docs/pictures/completion.svg
#
#   build/bench/bench_completion_sim > bench/results/completion.txt
#   gnuplot bench/results/completion.gp
#
# SPDX-License-Identifier: BSD-3-Clause
here = "bench/results/"
set terminal svg size 720,440 font "sans-serif,13" background "#ffffff"
set output "docs/pictures/completion.svg"
set title "128 MiB over 400 Gbit/s and 25 ms, in simulation" font ",15"
set xlabel "share of packets lost"
set ylabel "completion time / ideal"
set logscale x
set xrange [6e-6:1.6e-2]
set yrange [0:*]
set format x "10^{%T}"
set grid ytics linecolor "#dddddd"
set border 3
set tics nomirror
set bmargin at screen 0.33
set key at screen 0.53,0.2 center top reverse Left maxcols 2 maxrows 3

# Columns: scheme, MiB, "MiB", loss, ideal, mean, formula, ratio, p99.9 (of 100 runs: the worst), formula, ratio
rows(scheme) = sprintf("<awk '$1 == \"%s\" && $2 == 128 && $4 > 0' %scompletion.txt", scheme, here)
plot rows("sr-rto")  using 4:($9/$5) with linespoints pt 9 lc "#e8a080" dt 2 title "sr-rto, worst of 100 runs", \
     rows("sr-rto")  using 4:($6/$5) with linespoints pt 9 lc "#c84010" lw 2 title "sr-rto, mean", \
     rows("sr-nack") using 4:($9/$5) with linespoints pt 7 lc "#80b0e0" dt 2 title "sr-nack, worst of 100 runs", \
     rows("sr-nack") using 4:($6/$5) with linespoints pt 7 lc "#1060b0" lw 2 title "sr-nack, mean", \
     1 with lines lc "#888888" title "ideal"
