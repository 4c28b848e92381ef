/*
 * The dumbbell and the fat tree of 16 hosts of bench_netsim, in ns-3: how many packets over a link it
 * simulates in a second.
 *
 * As cheap as ns-3 does it: point-to-point devices, IPv4, UDP, no queue discipline, no IPv6. Each flow has at
 * most WINDOW packets on the way, and every packet is answered by an acknowledgement; nothing is lost, so
 * nobody looks at sequence numbers. TCP would do more (timers, congestion control, a scoreboard). Packets
 * have the same sizes on the wire as in bench_netsim, and take as many links.
 *
 * usage: bench_netsim_ns3 CASE [BYTES]
 * {"case":…,"hops":…,"seconds":…,"cpu_seconds":…,"setup_seconds":…,"virtual_seconds":…,"flows":…}
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/nix-vector-routing-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-helper.h>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

/* As bench_netsim: transport.payload, header, ack and window. ns-3 adds 30 bytes itself: PPP, IPv4, UDP. */
constexpr uint32_t PAYLOAD = 4096;
constexpr uint32_t NS3_HEADERS = 30;
constexpr uint32_t DATA_BYTES = PAYLOAD + 78 - NS3_HEADERS;
constexpr uint32_t ACK_BYTES = 64 - NS3_HEADERS;
constexpr uint32_t WINDOW = 64;
constexpr uint16_t PORT = 4791;

uint64_t hops;

void count_hop(Ptr<const Packet>)
{
    hops++;
}

double seconds(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/* ---- the network ---- */

class Network
{
  public:
    explicit Network(uint32_t hosts, uint32_t switches)
    {
        m_hosts.Create(hosts);
        m_switches.Create(switches);
        m_cable.SetDeviceAttribute("DataRate", StringValue("100Gbps"));
        m_cable.SetDeviceAttribute("Mtu", UintegerValue(9000));
        m_cable.SetChannelAttribute("Delay", StringValue("1us"));
        m_cable.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));
        /* Source routes; global routing tables were not faster, nor was any other scheduler. */
        Ipv4NixVectorHelper routing;
        InternetStackHelper stack;
        stack.SetRoutingHelper(routing);
        stack.SetIpv6StackInstall(false);
        stack.Install(m_hosts);
        stack.Install(m_switches);
        m_addresses.SetBase("10.0.0.0", "255.255.255.252");
    }

    void connect_host(uint32_t host, uint32_t to)
    {
        m_host_addresses.push_back(connect(m_hosts.Get(host), m_switches.Get(to)));
    }

    void connect_switches(uint32_t one, uint32_t other)
    {
        connect(m_switches.Get(one), m_switches.Get(other));
    }

    uint32_t hosts() const
    {
        return m_hosts.GetN();
    }

    Ptr<Node> host(uint32_t number) const
    {
        return m_hosts.Get(number);
    }

    Ipv4Address address(uint32_t host) const
    {
        return m_host_addresses.at(host);
    }

  private:
    NodeContainer m_hosts;
    NodeContainer m_switches;
    PointToPointHelper m_cable;
    Ipv4AddressHelper m_addresses;
    std::vector<Ipv4Address> m_host_addresses;

    Ipv4Address connect(Ptr<Node> one, Ptr<Node> other)
    {
        NetDeviceContainer ends = m_cable.Install(one, other);
        for (uint32_t i = 0; i < ends.GetN(); i++)
            ends.Get(i)->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&count_hop));
        Ipv4InterfaceContainer interfaces = m_addresses.Assign(ends);
        m_addresses.NewNetwork();
        TrafficControlHelper().Uninstall(ends);
        return interfaces.GetAddress(0);
    }
};

std::unique_ptr<Network> make_dumbbell()
{
    auto network = std::make_unique<Network>(8, 2);
    for (uint32_t host = 0; host < 8; host++)
        network->connect_host(host, host / 4);
    network->connect_switches(0, 1);
    return network;
}

/* Switches: 8 at the edge, 8 above them, 4 in the core. */
std::unique_ptr<Network> make_fat_tree()
{
    const uint32_t half = 2;
    const uint32_t pods = 4;
    const uint32_t above = pods * half;
    const uint32_t core = 2 * pods * half;
    auto network = std::make_unique<Network>(16, core + half * half);
    for (uint32_t host = 0; host < 16; host++)
        network->connect_host(host, host / half);
    for (uint32_t pod = 0; pod < pods; pod++)
        for (uint32_t i = 0; i < half; i++)
            for (uint32_t j = 0; j < half; j++) {
                network->connect_switches(pod * half + i, above + pod * half + j);
                network->connect_switches(above + pod * half + i, core + i * half + j);
            }
    return network;
}

/* ---- a flow ---- */

class Flow
{
  public:
    Flow(const Network &network, uint32_t from, uint32_t to, uint64_t packets)
        : m_left(packets), m_unanswered(packets),
          m_sender(Socket::CreateSocket(network.host(from), UdpSocketFactory::GetTypeId())),
          m_receiver(Socket::CreateSocket(network.host(to), UdpSocketFactory::GetTypeId()))
    {
        m_sender->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
        m_receiver->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT + 1));
        m_sender->Connect(InetSocketAddress(network.address(to), PORT + 1));
        m_receiver->Connect(InetSocketAddress(network.address(from), PORT));
        m_receiver->SetRecvCallback(MakeCallback(&Flow::on_data, this));
        m_sender->SetRecvCallback(MakeCallback(&Flow::on_ack, this));
        Simulator::ScheduleNow(&Flow::start, this);
    }

    bool done() const
    {
        return m_unanswered == 0;
    }

  private:
    uint64_t m_left;
    uint64_t m_unanswered;
    Ptr<Socket> m_sender;
    Ptr<Socket> m_receiver;

    void send()
    {
        if (m_left == 0)
            return;
        m_left--;
        m_sender->Send(Create<Packet>(DATA_BYTES));
    }

    void start()
    {
        for (uint32_t i = 0; i < WINDOW; i++)
            send();
    }

    void on_data(Ptr<Socket> socket)
    {
        while (socket->Recv())
            socket->Send(Create<Packet>(ACK_BYTES));
    }

    void on_ack(Ptr<Socket> socket)
    {
        while (socket->Recv()) {
            m_unanswered--;
            send();
        }
    }
};

/* 8MB, or plain bytes: what bench/run gives. */
uint64_t parse_bytes(const char *text)
{
    char *end;
    uint64_t number = std::strtoull(text, &end, 10);
    return std::strcmp(end, "MB") == 0   ? number * 1000000
           : std::strcmp(end, "kB") == 0 ? number * 1000
                                         : number;
}

} // namespace

int main(int argc, char **argv)
{
    std::string name = argc > 1 ? argv[1] : "";
    uint64_t bytes = parse_bytes(argc > 2 ? argv[2] : "8MB");
    if (name != "dumbbell" && name != "fat-tree-16") {
        std::fprintf(stderr, "usage: bench_netsim_ns3 dumbbell|fat-tree-16 [BYTES]\n");
        return 2;
    }
    double created = seconds(CLOCK_MONOTONIC);
    Time::SetResolution(Time::PS);
    std::unique_ptr<Network> network = name == "dumbbell" ? make_dumbbell() : make_fat_tree();
    std::vector<std::unique_ptr<Flow>> flows;
    uint32_t hosts = network->hosts();
    for (uint32_t host = 0; host < hosts; host++)
        flows.push_back(std::make_unique<Flow>(*network, host, (host + hosts / 2) % hosts,
                                               (bytes + PAYLOAD - 1) / PAYLOAD));

    double started = seconds(CLOCK_MONOTONIC);
    double cpu_started = seconds(CLOCK_PROCESS_CPUTIME_ID);
    Simulator::Run();
    double spent = seconds(CLOCK_MONOTONIC) - started;
    double cpu_spent = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_started;
    for (const auto &flow : flows)
        if (!flow->done()) {
            std::fprintf(stderr, "bench_netsim_ns3: a flow is not done\n");
            return 1;
        }
    std::printf(
        "{\"case\":\"%s\",\"hops\":%llu,\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"setup_seconds\":%.6f,"
        "\"virtual_seconds\":%.9f,\"flows\":%u}\n",
        name.c_str(), static_cast<unsigned long long>(hops), spent, cpu_spent, started - created,
        Simulator::Now().GetSeconds(), hosts);
    Simulator::Destroy();
    return 0;
}
