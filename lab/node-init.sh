#!/bin/sh
# The first process of a node, in fresh pid, mount, network, UTS and IPC namespaces. It gives the node a file system in
# which everything a node writes to is its own, and then waits. What it mounts is seen by this node alone and ends with it.
#
# usage: node-init.sh NODE_FOLDER KUBERNETES_PROGRAMS TOOL_PROGRAMS NAME
set -eu
folder=$1 kubernetes=$2 tools=$3 name=$4

# The pods' mounts must reach the pods, as on any node, but never this machine.
mount --make-rshared /

# First a place that survives the hiding of /var and /run, since the lab's own folders can lie there.
mount -t tmpfs lab /mnt
mkdir /mnt/node /mnt/kubernetes /mnt/tools
mount --bind "$folder" /mnt/node
mount --bind "$kubernetes" /mnt/kubernetes
mount --bind "$tools" /mnt/tools
mount -t tmpfs -o mode=755 run /run
mount --bind /mnt/node/var /var

echo "$name" >/proc/sys/kernel/hostname

# A node that boots has a new boot id.
cat /proc/sys/kernel/random/uuid >/run/boot_id
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id

# The kubelet sets these for the whole machine unless they have the values it wants: show it those values.
pretend() {
    file=/run/$(echo "$1" | tr / .)
    echo "$2" >"$file"
    mount --bind "$file" "/proc/sys/$1"
}
pretend vm/overcommit_memory 1
pretend vm/panic_on_oom 0
pretend kernel/panic 10
pretend kernel/panic_on_oops 1
pretend kernel/keys/root_maxkeys 1000000
pretend kernel/keys/root_maxbytes 25000000

touch /run/booted
exec /mnt/tools/toolbox pause
