# Error of the worst block of messages that lost packets, by stride: docs/pictures/hadamard-stride.svg
#
#   build/bench/bench_hadamard_loss > bench/results/hadamard.txt
#   gnuplot bench/results/hadamard-stride.gp
#
# SPDX-License-Identifier: BSD-3-Clause
here = "bench/results/"
set terminal svg size 900,470 font "sans-serif,12" background "#ffffff"
set output "docs/pictures/hadamard-stride.svg"
# Columns: tensor, loss, transform, stride, rate, mean, p99, worst block: mean, p99, share with a lost block
rows(tensor, loss, name, stride) = sprintf("<awk '$1 == \"%s\" && $2 == \"%s\" && $3 == \"%s\" && $4 == %d' %shadamard.txt", \
                                   tensor, loss, name, stride, here)
set border 3
set tics nomirror
set grid ytics lc rgb "#dddddd"
set xlabel "packets lost, %"
set yrange [0:*]
set bmargin at screen 0.32
set tmargin at screen 0.84
set key at screen 0.5, 0.02 center bottom reverse Left maxrows 3
# One legend for both.
named(name, loss) = loss eq "bursts" ? name : ""
set multiplot layout 1,2 title "Messages of 256 packets with 256 elements each, no outliers" font ",14"
do for [loss in "independent bursts"] {
    set title loss eq "bursts" ? "bursts: the worst block, mean" : "independent losses: the worst block, mean"
    set ylabel "squared error / energy of the block"
    plot rows("even", loss, "block", 1) using (100 * $5):8 with linespoints lw 2 pt 7 ps 0.6 lc rgb "#f4a582" title named("raw, block", loss), \
         rows("even", loss, "stride", 2) using (100 * $5):8 with linespoints lw 2 pt 4 ps 0.6 lc rgb "#d6604d" title named("block + stride 2", loss), \
         rows("even", loss, "stride", 8) using (100 * $5):8 with linespoints lw 2 pt 6 ps 0.6 lc rgb "#9970ab" title named("stride 8", loss), \
         rows("even", loss, "stride", 32) using (100 * $5):8 with linespoints lw 2 pt 8 ps 0.6 lc rgb "#4393c3" title named("stride 32", loss), \
         rows("even", loss, "stride", 256) using (100 * $5):8 with linespoints lw 4 pt 9 ps 0.8 lc rgb "#92c5de" title named("stride 256", loss), \
         rows("even", loss, "message", 1) using (100 * $5):8 with linespoints lw 2 pt 13 ps 0.5 lc rgb "#2166ac" title named("whole message", loss)
}
unset multiplot
