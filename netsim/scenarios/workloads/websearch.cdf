# websearch.cdf - sizes of flows of a web search cluster: SIZE CUMULATIVE, linear between points.
#
# The workload of DCTCP (Alizadeh et al., SIGCOMM 2010, figure 4), with the points that the simulator of HPCC
# (Li et al., SIGCOMM 2019) made common: its traffic_gen/WebSearch_distribution.txt, there in percent.
# Mean: 1,711,250 bytes. 95 of 100 bytes are in flows above 1 MB, which are 30 of 100 flows.
0 0
10000 0.15
20000 0.2
30000 0.3
50000 0.4
80000 0.53
200000 0.6
1000000 0.7
2000000 0.8
5000000 0.9
10000000 0.97
30000000 1
