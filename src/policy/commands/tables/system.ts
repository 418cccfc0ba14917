import type { CommandClass } from '../classes.js'
import { isElsewhere } from '../paths.js'
import { type Call, hasOption, type ProgramTable, same, tool } from '../rules.js'

const CHANGE: CommandClass[] = ['system_change']
const LOSS: CommandClass[] = ['system_change', 'destructive']

function killing(call: Call): CommandClass[] {
  if (call.words.length === 1 && /^-[lL]$/.test(call.words[0]?.value ?? '')) return ['read_only']
  const everything = call.words.some((word, at) => at > 0 && word.value === '-1')
  return everything ? ['process_control', 'system_change'] : ['process_control']
}

function managing(call: Call): CommandClass[] {
  const action = call.words.find((word) => !word.value.startsWith('-'))?.value
  if (hasOption(call, '-H', '-M', '--host', '--machine')) return ['network_egress', 'system_change', 'unknown']
  if (/^(?:status|show|list-.*|is-.*|cat|get-default)$/.test(action ?? '')) return ['read_only']
  if (/^(?:poweroff|reboot|halt|kexec|rescue|emergency|suspend|hibernate)$/.test(action ?? '')) return CHANGE
  return ['process_control', 'system_change', 'code_execution']
}

/** Without an operand, or with one inside the working folder, nothing but the script itself is moved. */
function moving(call: Call): CommandClass[] {
  const target = call.words.find((word) => word.value !== '--' && !/^-[LP]$/.test(word.value))
  return target === undefined || target.known || !isElsewhere(target.value) ? ['read_only'] : ['unknown']
}

function setting(call: Call): CommandClass[] {
  if (call.words.length === 0) return ['secret_access']
  const harmless = /^(?:[-+][euxvfCn]+|[-+][eux]*o|pipefail|errexit|nounset|xtrace|noclobber|noglob|verbose)$/
  const positional = call.words[0]?.value === '--'
  return positional || call.words.every(({ value }) => harmless.test(value)) ? ['read_only'] : ['unknown']
}

function declaring(call: Call): CommandClass[] {
  const listing = call.words.every(({ value }) => /^-[a-zA-Z]*p?$/.test(value))
  if (listing) return ['secret_access']
  return call.words.every(({ value }) => !value.startsWith('-') || /^-[aArxgip]+$/.test(value))
    ? ['read_only']
    : ['unknown']
}

/** Addresses are looked up at a name server: ss does so when told to, the others unless told not to. */
function naming({ program, words }: Call): CommandClass[] {
  const asks =
    program === 'ss'
      ? words.some(({ value }) => /^-\w*r|^--r/.test(value))
      : !words.some(({ value }) => /^-\w*n|^--numeric$/.test(value))
  return asks ? ['network_egress'] : []
}

const PROCESSES: ProgramTable = {
  ...same('kill pkill killall killall5 skill snice renice fuser xkill', tool([], { operands: 'own', check: killing })),
  ...same('bg fg disown', tool(['process_control'])),
  ...same('jobs wait', tool(['read_only'], { operands: 'text' })),
  ...same(
    'systemctl service launchctl rc-service initctl supervisorctl',
    tool([], { operands: 'own', check: managing }),
  ),
  ...same('pm2 forever screen tmux byobu zellij dtach abduco', tool(['process_control', 'code_execution', 'unknown'])),
  ...same(
    'top htop btop iotop',
    tool(['read_only'], { options: '-bcH1 -n: -d: -p: -u: -o: -l: -s:', operands: 'text' }),
  ),
  ...same(
    'gdb lldb strace ltrace perf bpftrace dtrace dtruss rr valgrind',
    tool(['process_control', 'code_execution', 'unknown']),
  ),
}

const MACHINE: ProgramTable = {
  ...same(
    'mkfs mke2fs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat mkfs.ntfs mkfs.f2fs mkswap newfs',
    tool(LOSS),
  ),
  ...same(
    'fdisk sfdisk cfdisk gdisk sgdisk parted diskutil hdparm nvme blkdiscard badblocks lvremove vgremove pvremove zpool zfs cryptsetup mdadm losetup format',
    tool(LOSS),
  ),
  ...same(
    'mount umount swapon swapoff sysctl modprobe insmod rmmod depmod dmesg ldconfig update-alternatives alternatives',
    tool(CHANGE),
  ),
  ...same('reboot shutdown halt poweroff init telinit', tool(CHANGE)),
  ...same(
    'useradd usermod userdel adduser deluser groupadd groupmod groupdel passwd chpasswd chsh chfn gpasswd vipw visudo dscl',
    tool(['system_change', 'privilege_escalation']),
  ),
  ...same(
    'iptables ip6tables nft ufw firewall-cmd pfctl ip ifconfig route nmcli networksetup iwconfig brctl tc',
    tool(CHANGE),
  ),
  ...same(
    'ss netstat arp',
    tool(['read_only'], {
      options: '-tulnparesx4o6iWHmZ',
      adds: { '-K -D: -F:': ['unknown', 'process_control'] },
      operands: 'text',
      check: naming,
    }),
  ),
  ...same('crontab at batch atq atrm cron anacron', tool(['system_change', 'code_execution'])),
  ...same(
    'timedatectl pmset hostnamectl localectl loginctl hwclock ntpdate tzselect defaults csrutil spctl codesign tccutil scutil nvram',
    tool([...CHANGE, 'unknown']),
  ),
  journalctl: tool(['read_only'], {
    options:
      '-aefkxqrbnm -u: -n: -p: -o: -S: -U: -t: -g: --unit: --since: --until: --no-pager --lines: --priority: --output: --follow --boot? --user --system --disk-usage',
    adds: { '--vacuum-size: --vacuum-time: --vacuum-files: --rotate --flush --sync': ['file_delete', 'system_change'] },
    operands: 'text',
  }),
  ...same(
    'setenforce aa-disable aa-enforce auditctl apparmor_parser chroot pivot_root',
    tool([...CHANGE, 'privilege_escalation']),
  ),
  ...same(
    'xdg-open open start osascript automator xdotool ydotool wmctrl gio gtk-launch notify-send explorer cmd powershell pwsh',
    tool(['code_execution', 'unknown']),
  ),
  ...same('pbpaste xclip xsel wl-paste', tool(['secret_access'])),
  ...same('pbcopy wl-copy', tool(['unknown'])),
}

const BUILTINS: ProgramTable = {
  ...same('cd pushd popd', tool([], { operands: 'own', check: moving })),
  ...same(
    'dirs shift return break continue exit umask hash ulimit times getopts',
    tool(['read_only'], { operands: 'text' }),
  ),
  ...same(
    'read mapfile readarray',
    tool(['read_only'], {
      operands: 'text',
      options: '-rsaet -d: -n: -N: -p: -t: -u: -a: -O: -s: -c:',
      adds: { '-C: -i:': ['code_execution', 'unknown'] },
    }),
  ),
  set: tool([], { operands: 'own', check: setting }),
  ...same('declare typeset export readonly local', tool([], { operands: 'own', check: declaring })),
  ...same('unset unsetenv', tool(['read_only'], { operands: 'text' })),
  let: tool(['read_only'], { operands: 'text' }),
  ...same(
    'shopt',
    tool([], {
      operands: 'own',
      check: ({ words }) =>
        words.every(({ value }) => /^(?:-[sup]+|nullglob|globstar|dotglob|nocaseglob|extglob|failglob)$/.test(value))
          ? ['read_only']
          : ['unknown'],
    }),
  ),
  ...same(
    'history fc',
    tool(['secret_access'], {
      check: (call) =>
        call.program === 'fc'
          ? ['code_execution']
          : call.words.some(({ value }) => /^-[a-z]*[arwncds]/.test(value))
            ? ['file_write', 'unknown']
            : [],
    }),
  ),
  ...same(
    'bind complete compgen compopt enable caller help suspend logout',
    tool(['unknown'], {
      check: (call) => (/^(?:enable|bind|complete|compgen)$/.test(call.program) ? ['code_execution'] : []),
    }),
  ),
}

export const SYSTEM: ProgramTable = { ...PROCESSES, ...MACHINE, ...BUILTINS }
