# fb_hadoop.cdf - sizes of flows of a Hadoop cluster at Facebook: SIZE CUMULATIVE, linear between points.
#
# Measured by Roy et al. (SIGCOMM 2015), with the points that the simulator of HPCC (Li et al., SIGCOMM 2019)
# made common: its traffic_gen/FbHdp_distribution.txt, there in percent.
# Mean: 120,420.75 bytes. 70 of 100 flows are below 10 kB; 92 of 100 bytes are in flows above 100 kB.
0 0
100 0.01
200 0.02
300 0.05
350 0.15
400 0.2
500 0.3
600 0.4
700 0.5
1000 0.6
2000 0.67
7000 0.7
30000 0.72
50000 0.82
80000 0.87
120000 0.9
300000 0.95
1000000 0.975
2000000 0.99
10000000 1
