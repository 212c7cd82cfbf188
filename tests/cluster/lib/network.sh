# One network namespace holds everything: control plane, controllers, S3, DNS and the pods' bridge.
# shellcheck shell=bash

make_network() {
  [ -e "$NETNS" ] || ip netns add "$NAME"
  ip -n "$NAME" link set lo up
  [[ $(ip -n "$NAME" address show dev lo) == *" $SERVICE_IP/"* ]] || ip -n "$NAME" address add "$SERVICE_IP/32" dev lo
  # A fixed MAC: a bridge otherwise takes the lowest one of its ports, which changes when a pod ends; the other
  # pods then have a stale neighbour entry for their gateway and new connections hang for 37 s.
  ip -n "$NAME" link show cni0 >/dev/null 2>&1 || ip -n "$NAME" link add cni0 address 0a:58:0a:f4:00:01 type bridge
  [[ $(ip -n "$NAME" address show dev cni0) == *" $GATEWAY/"* ]] || ip -n "$NAME" address add "$GATEWAY/24" dev cni0
  ip -n "$NAME" link set cni0 up
  in_netns sysctl -qw net.ipv4.ip_forward=1; }
