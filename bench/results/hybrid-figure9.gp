# Speed-up of hybrid over the better of sr-nack and ec:mds, by the model: docs/pictures/hybrid-figure9.svg
#
#   build/bench/bench_hybrid_sim --part map > bench/results/hybrid.txt
#   gnuplot bench/results/hybrid-figure9.gp
#
# SPDX-License-Identifier: BSD-3-Clause
here = "bench/results/"
set terminal svg noenhanced size 900,680 font "sans-serif,12" background "#ffffff"
set output "docs/pictures/hybrid-figure9.svg"

# The table under the title "hybrid, bursts of B: WHAT": sizes down, losses across.
map(burst, what) = sprintf("<awk '/^hybrid, bursts of %s: %s$/ {on = 1; next} ".\
                           "on && NF == 0 {if (rows) exit} on && NF {rows++; gsub(/e-0/, \"e-\"); print}' %shybrid.txt", \
                           burst, what, here)

# As "longhaul plan --map": green is faster, red slower.
set palette defined (-1 "#d8604c", 0 "#f7f7f7", 1.4 "#4caf78")
set cbrange [-1:1.4]
set cbtics ("1/2" -1, "1" 0, "2" 1)
set cblabel "times faster than the better of the two (green: faster, red: slower)"
set colorbox user origin screen 0.9,0.2 size screen 0.025,0.6
set tics scale 0
set yrange [] reverse
set xlabel "share of packets lost"
set ylabel "message size"
set multiplot layout 2,2 margins screen 0.11,0.87,0.1,0.88 spacing screen 0.13,0.17 title "hybrid over the better of sr-nack and ec:mds (32, 8), 400 Gbit/s and 25 ms, by the model" \
    font ",15"
do for [burst in "1 8"] {
    do for [what in "mean tail"] {
        set title (burst eq "1" ? "single losses, " : "bursts of 8, ").(what eq "mean" ? "mean" : "p99.9 (p99 above 128 MiB)") font ",13"
        plot map(burst, what) matrix rowheaders columnheaders using 1:2:(log($3) / log(2)) with image pixels notitle, \
             map(burst, what) matrix rowheaders columnheaders using 1:2:(sprintf("%.2f", $3)) \
                 with labels font ",10" notitle
        unset colorbox
    }
}
unset multiplot
