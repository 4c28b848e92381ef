# Score over the time of training, by backend, a line a seed: docs/pictures/training.svg
#
#   bench/run training; cp build/training.txt bench/results/
#   gnuplot bench/results/training.gp
#
# SPDX-License-Identifier: BSD-3-Clause
file = "bench/results/training.txt"
set terminal svg size 900,450 font "sans-serif,12" background "#ffffff"
set output "docs/pictures/training.svg"
# Columns: part, loss, backend, seed, step, seconds, score
rows(part, backend, seed) = sprintf("<awk '$1 == \"%s\" && $2 == \"1e-2\" && $3 == \"%s\" && $4 == %d' %s", \
                                    part, backend, seed, file)
set border 3
set tics nomirror
set xtics 10
set rmargin 3
set grid ytics lc rgb "#dddddd"
set xlabel "seconds of training"
set bmargin at screen 0.33
set tmargin at screen 0.8
set key at screen 0.5, 0.03 center bottom horizontal maxrows 1
names = "gloo longhaul bounded"
labels = "'Gloo over BBR' 'longhaul' 'longhaul, bounded'"
shades = "0xb2182b 0x2166ac 0x5aae61"
set multiplot layout 1,3 title "Two sites, loss 1e-2" font ",14"
do for [panel = 1:3] {
    part = word("digits text diloco", panel)
    seeds = panel == 1 ? 5 : 3
    set title word("'perceptron, DDP' 'transformer, DDP' 'transformer, DiLoCo'", panel)."\n".\
              word("'25 ms, 200 Mbit/s' '25 ms, 1 Gbit/s' '100 ms, 200 Mbit/s'", panel) font ",11"
    set ylabel panel == 1 ? "share of digits named right" : "bits a byte"
    sign = panel == 1 ? 1 : -1
    if (panel == 1) { set yrange [0.4:1] } else { set yrange [2.5:5] }
    plot for [n = 1:3] for [seed = 1:seeds] rows(part, word(names, n), seed) using 6:(sign * $7) with lines lw 1.5 \
         lc rgb int(word(shades, n)) title (panel == 2 && seed == 1 ? word(labels, n) : "")
}
unset multiplot
