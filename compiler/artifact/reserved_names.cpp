// The words themselves. A test compiles a header whose tensors are called as every macro of the standard
// headers at hand.
#include "compiler/artifact/reserved_names.h"

#include <set>

namespace firn::artifact {
namespace {

using Words = std::set<std::string_view>;

// The words between the spaces of `text`.
Words split(std::string_view text) {
  Words words;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    words.insert(text.substr(0, space));
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return words;
}

// Keywords of C up to C23 and C++ up to C++26, alternative tokens, contextual keywords and those of
// extensions.
const Words& keywords() {
  static const Words words = split(
      "alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool "
      "break case catch char char16_t char32_t char8_t class co_await co_return co_yield compl concept "
      "const const_cast consteval constexpr constinit continue contract_assert decltype default delete do "
      "double dynamic_cast else enum explicit export extern false final float for friend goto if import "
      "inline int long module mutable namespace new noexcept not not_eq nullptr operator or or_eq "
      "override private protected public reflexpr register reinterpret_cast requires restrict return "
      "short signed sizeof static static_assert static_cast struct switch synchronized template this "
      "thread_local throw transaction_safe transaction_safe_dynamic true try typedef typeid typename "
      "typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq");
  return words;
}

// Macros that programs in C++ see in the headers of C, C++ and POSIX: all with lower-case letters, as glibc
// and newlib define them, and those of one word in capitals that the standards of C and C++ name.
const Words& cpp_macros() {
  static const Words words = split(
      "alloca assert assert_perror atomic_compare_exchange_strong atomic_compare_exchange_strong_explicit "
      "atomic_compare_exchange_weak atomic_compare_exchange_weak_explicit atomic_exchange "
      "atomic_exchange_explicit atomic_fetch_add atomic_fetch_add_explicit atomic_fetch_and "
      "atomic_fetch_and_explicit atomic_fetch_or atomic_fetch_or_explicit atomic_fetch_sub "
      "atomic_fetch_sub_explicit atomic_fetch_xor atomic_fetch_xor_explicit atomic_flag_clear "
      "atomic_flag_clear_explicit atomic_flag_test_and_set atomic_flag_test_and_set_explicit atomic_init "
      "atomic_is_lock_free atomic_load atomic_load_explicit atomic_signal_fence atomic_store "
      "atomic_store_explicit atomic_thread_fence basename be16toh be32toh be64toh clrbit complex d_fileno "
      "errno fpclassify h_addr h_errno howmany htobe16 htobe32 htobe64 htole16 htole32 htole64 "
      "ifa_broadaddr ifa_dstaddr ifc_buf ifc_req ifr_addr ifr_bandwidth ifr_broadaddr ifr_data "
      "ifr_dstaddr ifr_flags ifr_hwaddr ifr_ifindex ifr_map ifr_metric ifr_mtu ifr_name ifr_netmask "
      "ifr_newname ifr_qlen ifr_slave isalnum_l isalpha_l isascii isascii_l isblank_l iscanonical isclr "
      "iscntrl_l isdigit_l isfinite isgraph_l isgreater isgreaterequal isinf isless islessequal "
      "islessgreater islower_l isnan isnormal isprint_l ispunct_l isset isspace_l issubnormal isunordered "
      "isupper_l isxdigit_l kill_dependency le16toh le32toh le64toh linux math_errhandling msg_cbytes "
      "noreturn offsetof powerof2 pthread_cleanup_pop pthread_cleanup_pop_restore_np pthread_cleanup_push "
      "pthread_cleanup_push_defer_np roundup s6_addr s6_addr16 s6_addr32 sa_handler sa_sigaction "
      "sched_priority setbit setjmp si_addr si_addr_lsb si_arch si_band si_call_addr si_fd si_int "
      "si_lower si_overrun si_pid si_pkey si_ptr si_status si_stime si_syscall si_timerid si_uid si_upper "
      "si_utime si_value sigcontext_struct sigev_notify_attributes sigev_notify_function sigmask signbit "
      "sigsetjmp st_atime st_ctime st_mtime stderr stdin stdout strdupa strndupa sve_vl_from_vq "
      "sve_vl_valid sve_vq_from_vl timeradd timerclear timercmp timerisset timersub toascii toascii_l "
      "unix va_arg va_copy va_end va_start BUFSIZ EDOM EILSEQ EOF ERANGE FALSE I INFINITY NAN NULL "
      "SIGABRT SIGFPE SIGILL SIGINT SIGSEGV SIGTERM TRUE");
  return words;
}

// Macros with lower-case letters that programs in C see besides.
const Words& c_macros() {
  static const Words words = split(
      "acos acosh asin asinh atan atan2 atanh bintime_clear bintime_cmp bintime_isset carg cbrt ceil "
      "cimag clearerr clearerr_unlocked conj copysign cos cosh cproj creal dadd ddiv dfma dmul dsqrt dsub "
      "erf erfc exp exp10 exp2 expm1 f32add f32div f32fma f32mul f32sqrt f32sub f32xadd f32xdiv f32xfma "
      "f32xmul f32xsqrt f32xsub f64add f64div f64fma f64mul f64sqrt f64sub f64xadd f64xdiv f64xfma "
      "f64xmul f64xsqrt f64xsub fabs fadd fast_putc fd_set fdim fdiv feof feof_unlocked ferror "
      "ferror_unlocked ffma floor fma fmax fmaximum fmaximum_mag fmaximum_mag_num fmaximum_num fmaxmag "
      "fmin fminimum fminimum_mag fminimum_mag_num fminimum_num fminmag fmod fmul frexp fromfp fromfpx "
      "fropen fsqrt fsub fwopen getchar_unlocked getwc getwc_unlocked getwchar getwchar_unlocked hypot "
      "ilogb isalnum isalpha isblank iscntrl isdigit iseqsig isgraph islower isprint ispunct issignaling "
      "isspace isupper isxdigit iszero ldexp lgamma llogb llrint llround log log10 log1p log2 logb lrint "
      "lround nearbyint nextafter nextdown nexttoward nextup physadr pow putchar_unlocked putwc "
      "putwc_unlocked putwchar putwchar_unlocked quad remainder remquo rint round roundeven scalb scalbln "
      "scalbn sigaddset sigdelset sigemptyset sigfillset sigismember signgam sin sinh sqrt strtodf tan "
      "tanh tgamma timespecadd timespecclear timespeccmp timespecisset timespecsub tolower toupper trunc "
      "tzname ufromfp ufromfpx");
  return words;
}

// The like of other systems and compilers.
const Words& platform_macros() {
  static const Words words = split(
      "arm bcopy bzero cdecl check d_ino far fd_isset getc getchar hpux huge hyper i386 imaginary "
      "interface m68k max memccpy memcpy memmove memset min mips near pascal pixel putc putchar require "
      "s_addr sgi small snprintf sparc sprintf st_birthtime stpcpy stpncpy strcat strcpy strlcat strlcpy "
      "strncat strncpy sun vax vector verify vsnprintf vsprintf");
  return words;
}

// First words of names that C's libraries declare: pthread_create, si_value. Firn's own are among them.
const Words& library_families() {
  static const Words words = split(
      "active aio arc4random at atomic bintime call clock cnd d fd fe firn fmaximum fminimum gai getc "
      "getchar glob h iconv if ifa ifc ifr in in6 inet int ipc ipv6 kill lio malloc math memory mq msg "
      "msqid mtx nl obstack once open posix pthread putc putchar re reg s s6 sa sched sem semid shm shmid "
      "si sig sigev sockaddr st std sve sys thrd timer tss u uint va");
  return words;
}

// Names of C's libraries that are of no family.
const Words& library_names() {
  static const Words words = split(
      "aligned_alloc close_range copy_file_range drand48_data explicit_bzero f_owner_ex fast_putc "
      "file_handle get_current_dir_name group_member hsearch_data max_align_t name_to_handle_at on_exit "
      "quick_exit random_data secure_getenv static_assert statx_timestamp sync_file_range thread_local "
      "timespec_get timespec_getres");
  return words;
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

// EOF, SIZE_MAX, PRId64, AF_DECnet, M_PIf, P_tmpdir: what C's libraries may call a macro.
bool is_styled_as_macro(std::string_view name) {
  if (name.size() < 2 || !is_upper(name[0])) return false;
  for (std::string_view family : {"L_", "M_", "P_"})
    if (name.starts_with(family)) return true;
  bool has_lower = false;
  for (char c : name) has_lower = has_lower || is_lower(c);
  return !has_lower || is_upper(name[1]);
}

bool is_firn_name(std::string_view name) {
  constexpr std::string_view firn = "firn";
  for (size_t i = 0; i < firn.size(); ++i)
    if (i >= name.size() || (name[i] | 0x20) != firn[i]) return false;
  return true;
}

} // namespace

bool is_reserved_class_word(std::string_view word) {
  const bool is_namespace_of_std =
      word.starts_with("std") && word.find_first_not_of("0123456789", 3) == std::string_view::npos;
  return keywords().count(word) || cpp_macros().count(word) || is_namespace_of_std || word == "posix" ||
         word == "firn" || word == "main";
}

bool is_reserved_name(std::string_view name) {
  return is_reserved_class_word(name) || c_macros().count(name) || platform_macros().count(name) ||
         is_styled_as_macro(name) || is_firn_name(name);
}

bool is_reserved_prefix(std::string_view prefix) {
  const size_t first = prefix.find('_');
  if (first == std::string_view::npos || library_families().count(prefix.substr(0, first))) return true;
  const bool ends_with_letter = prefix[prefix.size() - 2] == '_'; // size_t, qsort_r
  return ends_with_letter || library_names().count(prefix) || keywords().count(prefix);
}

} // namespace firn::artifact
