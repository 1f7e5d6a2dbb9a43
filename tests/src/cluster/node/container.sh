# sh container.sh ROOT USER:GROUP PROGRAMS [SOURCE TARGET ro|rw]... -- COMMAND [ARGUMENT]...
#
# Runs a command like a container: in the mount namespace of the caller, as another user, with a read-only root. The root
# contains the programs and libraries of this machine, those of this project in /usr/local/bin, and the mounts. The caller sets the environment.
set -e
root=$1 user=$2 programs=$3
shift 3

mount -t tmpfs -o mode=755 container "$root"
mkdir -p "$root/usr/local/bin" "$root/etc" "$root/proc" "$root/dev"
for name in bin lib lib64 usr/bin usr/lib usr/lib64; do
  if [ -L "/$name" ]; then
    cp -P "/$name" "$root/$name"
  elif [ -d "/$name" ]; then
    mkdir -p "$root/$name"
    mount --bind "/$name" "$root/$name"
  fi
done
for program in caipe-supervisor caipe-operator caipe-fixture-mcp; do
  : >"$root/usr/local/bin/$program"
  mount --bind "$programs/$program" "$root/usr/local/bin/$program"
done
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
[ ! -f /etc/nsswitch.conf ] || cp /etc/nsswitch.conf "$root/etc/"
authorities=/etc/ssl/certs/ca-certificates.crt
if [ -f $authorities ]; then
  mkdir -p "$root/etc/ssl/certs"
  cp -L $authorities "$root$authorities"
fi

while [ "$1" != -- ]; do
  if [ -d "$1" ]; then
    mkdir -p "$root$2"
  else
    mkdir -p "$(dirname "$root$2")"
    : >"$root$2"
  fi
  mount --bind "$1" "$root$2"
  [ "$3" = rw ] || mount -o remount,bind,ro "$root$2"
  shift 3
done
shift
mount -o remount,ro "$root"
exec chroot --userspec="$user" --groups="${user#*:}" "$root" "$@"
