# Error of messages that lost packets, raw and after transforms: docs/pictures/hadamard-loss.svg
#
#   build/bench/bench_hadamard_loss > bench/results/hadamard.txt
#   gnuplot bench/results/hadamard-loss.gp
#
# SPDX-License-Identifier: BSD-3-Clause
here = "bench/results/"
set terminal svg size 900,470 font "sans-serif,12" background "#ffffff"
set output "docs/pictures/hadamard-loss.svg"
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
set multiplot layout 1,2 title "Messages of 256 packets with 256 elements each, one in 1,000 an outlier" font ",14"
do for [loss in "independent bursts"] {
    set title loss eq "bursts" ? "bursts of 8 packets: the whole message" : "independent losses: the whole message"
    set ylabel "squared error / energy of the message"
    plot rows("outliers", loss, "raw", 0) using (100 * $5):7 with linespoints lw 2 pt 5 ps 0.6 lc rgb "#b2182b" title named("raw, p99", loss), \
         rows("outliers", loss, "block", 1) using (100 * $5):7 with linespoints lw 2 pt 7 ps 0.6 lc rgb "#f4a582" title named("block, p99", loss), \
         rows("outliers", loss, "stride", 256) using (100 * $5):7 with linespoints lw 4 pt 9 ps 0.8 lc rgb "#92c5de" title named("block + stride 256, p99", loss), \
         rows("outliers", loss, "message", 1) using (100 * $5):7 with linespoints lw 2 pt 13 ps 0.5 lc rgb "#2166ac" title named("whole message, p99", loss), \
         rows("outliers", loss, "raw", 0) using (100 * $5):6 with lines dt 2 lc rgb "#b2182b" title named("raw, mean", loss), \
         rows("outliers", loss, "stride", 256) using (100 * $5):6 with lines dt 3 lw 2 lc rgb "#2166ac" title named("block + stride 256, mean", loss)
}
unset multiplot
